"""Text of any origin in a form that may be printed: control characters are shown instead of obeyed, length is limited.

A name, a reason or the output of a program may hold terminal escapes or megabytes. Whatever prints such a text applies
`printable` and `shortened`; JSON output escapes such characters by itself and keeps the exact text.
"""

#: Characters of a message, and of a line of other output, at most.
LONGEST_MESSAGE = 2000
LONGEST_LINE = 4000

_KEPT = "\n\t"


def printable(text: str) -> str:
    """The text with every character that is not printable as its escape sequence; line breaks and tabs stay.

    >>> print(printable("red: \\x1b[31m"))
    red: \\x1b[31m
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in _KEPT else c.encode("unicode_escape").decode() for c in text)


def shortened(text: str, most: int) -> str:
    """The text if it has at most so many characters; else its beginning and its end.

    >>> shortened("0123456789" * 3, 10)
    '012345 … 9'
    """
    if len(text) <= most:
        return text
    end = max((most - 3) // 5, 1)
    return f"{text[: most - 3 - end]} … {text[-end:]}"


def one_line(text: str, most: int = LONGEST_MESSAGE) -> str:
    """A message as one printable line of limited length."""
    return shortened(printable(" ".join(shortened(text, 10 * most).split())), most)
