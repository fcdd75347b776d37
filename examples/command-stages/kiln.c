/* A cement kiln: limestone burnt to clinker.
 *
 * Standard input:   {"temperature": 1450.0, "burning": 25.0}             degrees Celsius, minutes
 * Standard output:  {"free_lime": 1.2, "crystal": 31.0, "fuel": 21.5}    percent, micrometres, euros a tonne
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The number of a name in a flat JSON object. */
static double number(const char *text, const char *name)
{
    char quoted[64];
    const char *place;
    char *end;
    double value;

    snprintf(quoted, sizeof quoted, "\"%s\"", name);
    place = strstr(text, quoted);
    if (place)
        place = strchr(place + strlen(quoted), ':');
    value = place ? strtod(place + 1, &end) : 0.0;
    if (!place || end == place + 1) {
        fprintf(stderr, "kiln: there is no number %s in the input: %s\n", name, text);
        exit(2);
    }
    return value;
}

/* How fast lime is bound: what is bound already lies between the rest and the melt. */
static double rate(double bound, double speed)
{
    return speed * (1.0 - bound) / (1.0 + 1.5 * bound);
}

int main(void)
{
    char text[4096];
    size_t length = fread(text, 1, sizeof text - 1, stdin);
    double temperature, minutes, inverse, speed, step, bound = 0.4, crystal, fuel;
    int i, steps = 1000;

    text[length] = '\0';
    temperature = number(text, "temperature");
    minutes = number(text, "burning");

    inverse = 1.0 / (temperature + 273.15) - 1.0 / 1723.15;
    speed = 0.22 * exp(-4.0e5 / 8.314 * inverse); /* per minute; 400 kJ/mol */
    step = minutes / steps;
    for (i = 0; i < steps; i++) { /* Runge and Kutta's fourth order */
        double a = rate(bound, speed);
        double b = rate(bound + 0.5 * step * a, speed);
        double c = rate(bound + 0.5 * step * b, speed);
        double d = rate(bound + step * c, speed);
        bound += step * (a + 2.0 * b + 2.0 * c + d) / 6.0;
    }
    crystal = cbrt(1000.0 + 1500.0 * minutes * exp(-5.5e5 / 8.314 * inverse)); /* they grow on each other's cost */
    fuel = 14.0 + 0.03 * (temperature - 1350.0) + 0.12 * minutes;

    printf("{\"free_lime\": %.17g, \"crystal\": %.17g, \"fuel\": %.17g}\n", 8.0 * (1.0 - bound), crystal, fuel);
    return 0;
}
