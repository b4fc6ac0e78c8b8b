"""A few sentences with references and translations, right and wrong, that the tests of this folder share."""

REFERENCES = [
    "Der alte Mann liest am Abend eine lange Zeitung.",
    "Zwei Kinder spielen im Garten.",
    "Sie kauft Brot, Käse und drei rote Äpfel.",
    "Ja.",
    "Wir fahren morgen früh mit dem Zug nach Hamburg.",
]
HYPOTHESES = [
    "Der alte Mann liest abends eine lange Zeitung.",
    "Zwei kinder spielen in dem Garten.",
    "Sie kauft Brot und drei Äpfel.",
    "Ja.",
    "",
]
SOURCES = [
    "The old man reads a long newspaper in the evening.",
    "Two children play in the garden.",
    "She buys bread, cheese and three red apples.",
    "Yes.",
    "We go to Hamburg by train early tomorrow morning.",
]
