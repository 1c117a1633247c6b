"""Words that a form leaves out count where they may be part of a name, or make few of many (K21)."""

import pytest

from gateway.middleware.semantic_cache.words import verifier
from gateway.middleware.semantic_cache.words.frame import substituted
from gateway.middleware.semantic_cache.words.guards import signature, veto
from gateway.middleware.semantic_cache.words.tier import tier_key

NAMES = [
    ("who sings hey jude", "who sings jude"),
    ("Who sings Hey Jude?", "Who sings Jude?"),
    ("hello kitty price", "kitty price"),
    ("where is hello kitty from", "where is kitty from"),
    ("Is Hello Fresh expensive?", "Is Fresh expensive?"),
    ("good morning america host", "america host"),
    ("thank you next lyrics", "next lyrics"),
    ("just dance songs", "dance songs"),
    ("who wrote just kids", "who wrote kids"),
    ("What is Just Eat?", "What is Eat?"),
    ("please like me cast", "like me cast"),
    ("who wrote please please me", "who wrote me"),
    ("Who founded Please Touch Museum?", "Who founded Touch Museum?"),
    ("who directed love actually", "who directed love"),
    ("Who directed Love Actually?", "Who directed Love?"),
    ("what is really simple syndication", "what is simple syndication"),
    ("who directed do the right thing", "who directed the right thing"),
    ("who lives there", "who lives"),
    ("how old is alexa", "how old is"),
    ("when did we get cheers", "when did we get"),
    ("is so solid crew still together", "is solid crew still together"),
    ("so solid crew members", "solid crew members"),
]
LETTERS = [
    ("is hepatitis a curable", "is hepatitis curable"),
    ("Is hepatitis A curable?", "Is hepatitis curable?"),
    ("which foods have vitamin a", "which foods have vitamin"),
    ("What is vitamin A good for?", "What is vitamin good for?"),
    ("which features are in plan a", "which features are in plan"),
    ("what grade is a level chemistry", "what grade is level chemistry"),
    ("where is gate a", "where is gate"),
]
FEW = [
    ("There are few risks", "There are a few risks"),
    ("are there few side effects", "are there a few side effects"),
    ("did little rain fall", "did a little rain fall"),
    ("has he a little money", "has he little money"),
    ("is it the few who decide", "is it few who decide"),
]
COUNTED = [
    ("cancel my last order", "cancel my last orders"),
    ("cancel my subscription", "Please cancel my subscriptions."),
    ("delete my file", "delete my files"),
    ("send the payments", "send the payment"),
    ("what is the best book by orwell", "what are the best books by orwell"),
    ("who won the last match", "who won the last matches"),
]
IDIOMS = [
    ("what's the matter", "what is matter"),
    ("what is the point", "what is point"),
    ("How do I take off my shoes", "How do I take my shoes"),
]
RESTRICTED = [
    ("Is my card partially blocked?", "Is my card blocked?"),
    ("Is it mostly safe to eat raw fish?", "Is it safe to eat raw fish?"),
    ("Are all my invoices paid?", "Are my invoices paid?"),
    ("what is the area of new york", "what is the area of new york state"),
    ("who is the acting head of the bank", "who is the head of the bank"),
    ("what is the early withdrawal fee", "what is the withdrawal fee"),
    ("When does the pool open?", "When does the pool open today?"),
    ("Describe photosynthesis", "Describe photosynthesis briefly"),
    ("Is the update installed on my phone?", "Is the update installing on my phone?"),
    ("Is the store closing on sunday?", "Is the store closed on sunday?"),
    ("Which drugs killed people", "Which drugs kill people"),
    ("Must I stay at the hotel", "May I stay at the hotel"),
]
NOTHING_SAID = [
    ("Is the pool open?", "Is the pool currently open?"),
    ("Is that dog really on the table?", "Is that dog on the table?"),
]
SAME = [
    ("cancel my order", "please cancel my order"),
    ("Please dim the lamp", "Dim the lamp"),
    ("hello, what is the capital of Peru?", "What is the capital of Peru"),
    ("hi there what is the capital of peru", "what is the capital of peru"),
    ("good morning, is the pool open?", "is the pool open"),
    ("how do i reset my password thanks", "how do i reset my password"),
    ("how do i reset my password please", "how do i reset my password"),
    ("can you please show my orders", "show my orders"),
    ("alexa turn off the light", "turn off the light"),
    ("is it really raining", "is it raining"),
    ("Is there a pool?", "is there a pool"),
    ("how do I cancel my order", "how do I cancel my orders"),
    ("so um can i change my flight", "can i change my flight"),
    ("what steps do i take to close an account", "how do i close an account"),
]
OTHER = [*NAMES, *LETTERS, *FEW, *COUNTED, *IDIOMS]


@pytest.mark.bug("K21")
@pytest.mark.parametrize(("one", "other"), OTHER)
def test_the_canonical_tier_keeps_them_apart(one: str, other: str) -> None:
    key = tier_key(one)
    assert not key or key != tier_key(other)


@pytest.mark.bug("K21")
@pytest.mark.parametrize("similarity", [verifier.NO_COSINE, 0.95, 0.999])
@pytest.mark.parametrize(("one", "other"), OTHER)
def test_guards_and_the_learned_verifier_keep_them_apart(
    one: str, other: str, similarity: float
) -> None:
    assert not verifier.serves(signature(one), signature(other), similarity)
    assert not verifier.serves(signature(other), signature(one), similarity)
    assert veto(signature(one), signature(other)) or substituted(one, other)


@pytest.mark.bug("K21")
@pytest.mark.parametrize(("one", "other"), RESTRICTED)
def test_guards_alone_let_no_word_be_added_that_says_something(one: str, other: str) -> None:
    assert substituted(one, other)
    assert substituted(other, one)


@pytest.mark.parametrize(("one", "other"), NOTHING_SAID)
def test_words_that_say_nothing_are_no_substitution(one: str, other: str) -> None:
    assert not substituted(one, other)
    assert not substituted(other, one)


@pytest.mark.parametrize(("one", "other"), SAME)
def test_courtesies_and_fillers_in_their_place_cost_no_hit(one: str, other: str) -> None:
    assert tier_key(one)
    assert tier_key(one) == tier_key(other)
    assert not veto(signature(one), signature(other))
    assert not substituted(one, other)
