# A ball mill: clinker ground to cement.
#
# Standard input:   {"free_lime": 1.2, "crystal": 31.0, "fuel": 21.5, "grinding": 45.0, "balls": 35}
#                   percent, micrometres, euros a tonne; minutes, millimetres
# Standard output:  {"strength": 52.3, "margin": 31.0}    megapascals, euros a tonne

# A flat JSON object without brackets, quotation marks and space is a list of name:number.
{
    gsub(/[{}" \t\r]/, "")
    count = split($0, pairs, ",")
    for (i = 1; i <= count; i++) {
        split(pairs[i], pair, ":")
        input[pair[1]] = pair[2] + 0
    }
}

END {
    if (!("grinding" in input)) {
        print "mill: there is no grinding in the input" > "/dev/stderr"
        exit 2
    }
    # Large crystals want large balls; grains become finer, and ever more slowly.
    fit = (input["balls"] - 20 - 0.6 * input["crystal"]) / 15
    fineness = 450 * (1 - exp(-input["grinding"] / (55 - 18 * exp(-fit * fit))))   # square metres a kilogram
    # Fine cement is strong; free lime, and crystals that have grown too large, make it weaker.
    strength = 68 * (1 - exp(-fineness / 190)) * exp(-(input["free_lime"] / 4) ^ 2) / (1 + (input["crystal"] / 90) ^ 4)
    power = 0.165 * input["grinding"]   # euros a tonne
    printf "{\"strength\": %.17g, \"margin\": %.17g}\n", strength, 1.3 * strength - input["fuel"] - power
}
