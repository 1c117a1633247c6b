"""What forbids that one answer serves two texts."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core import codec
from gateway.middleware.semantic_cache.words.guards import REASONS, signature, veto
from gateway.middleware.semantic_cache.words.opposites import OPPOSITES
from gateway.middleware.semantic_cache.words.reading import LONGEST
from gateway.middleware.semantic_cache.words.signature import Signature

FORBIDDEN = [
    ("number", "Where is parcel 48213?", "Where is parcel 48231?"),
    ("number", "Book 2 seats", "Book 3 seats"),
    ("number", "Compare 3 with 5", "Compare 5 with 3"),
    ("number", "What is 1+1?", "What is 21+1?"),
    ("unit", "Is 5 miles far?", "Is 5 kilometers far?"),
    ("unit", "Send 20 dollars to Ann", "Send 20 euros to Ann"),
    ("date", "Who plays on Monday?", "Who plays on Tuesday?"),
    ("date", "What is on today?", "What is on tomorrow?"),
    ("date", "What did I spend this month?", "What did I spend this year?"),
    ("date", "Rain in June?", "Rain in July?"),
    ("negation", "Cancel the order", "Don't cancel the order"),
    ("negation", "Is tea with milk nice?", "Is tea without any milk nice?"),
    ("negation", "Is the rent refundable?", "Is the rent non-refundable?"),
    ("pronoun", "Does she know him?", "Does he know her?"),
    ("direction", "Trains from Oslo to Bergen", "Trains from Bergen to Oslo"),
    ("direction", "Are lions bigger than bears?", "Are bears bigger than lions?"),
    ("direction", "Is rent more costly than a loan?", "Is a loan more costly than rent?"),
    ("direction", "Is Ann lying to Bob?", "Is Bob lying to Ann?"),
    ("direction", "is the nurse loyal to the cook", "is the cook loyal to the nurse"),
    ("direction", "Tell Ann that Bob is late", "Tell Bob that Ann is late"),
    ("opposite", "Is the pump working?", "Is the pump broken?"),
    ("opposite", "How do I enable the alarm?", "How do I disable the alarm?"),
    ("opposite", "Is the shop open?", "Is the shop closed?"),
    ("opposite", "Is this lawful?", "Is this unlawful?"),
    ("opposite", "Did the cables connect?", "Did the cables disconnect?"),
    ("opposite", "Eat before the run", "Eat after the run"),
    ("opposite", "How do I lower the fee?", "How do I increase the fee?"),
    ("opposite", "Rules for private accounts", "Rules for business accounts"),
    ("scope", "Paint the kitchen", "Paint the bathroom"),
    ("scope", "Make it red", "Make it blue"),
    ("name", "Who founded Contoso?", "Who founded Fabrikam?"),
    ("name", "Email Ann about the plan", "Email Bob about the plan"),
    ("name", "Weather for Lund please", "weather for malmö please"),
    ("quote", 'What does "bark" mean?', 'What does "bank" mean?'),
    ("code", "Explain --max-cost here", "Explain --max-heads here"),
    ("code", "Read /etc/hosts for me", "Read /etc/passwd for me"),
    ("code", "What does get_user do?", "What does set_user do?"),
    ("code", "Open https://a.example/x", "Open https://a.example/y"),
    ("language", "What is the weather?", "今日の天気は何ですか"),
    ("form", "Is 'goes' correct?", "Is 'go' correct?"),
    ("form", "What does goes mean?", "What does go mean?"),
    ("form", "How do you spell colour?", "How do you spell color?"),
    ("form", "Say it: she walks home", "Say it: she walk home"),
    ("form", "Define an hour", "Define a hour"),
    ("form", "Sing \u2018La La\u2019", "Sing \u2018La\u2019"),
    ("number", "difference between seven and three", "difference between three and seven"),
    ("form", "Is a-b small?", "Is b-a small?"),
    ("form", "What is n!?", "What is n?"),
    ("form", "if p then q", "if q then p"),
    ("form", "Tell me about AIDS", "tell me about aids"),
    ("form", "Are they Polish?", "Are they polish?"),
    ("long", "word " * LONGEST, "word " * LONGEST + "end"),
]
PASSED = [
    ("Is Ann connected to Bob?", "Is Bob connected to Ann?"),
    ("Is Ann or Bob late?", "Is Bob or Ann late?"),
    ("Is that cat asleep?", "Is that cat currently asleep?"),
    ("Which countries border Chad?", "Which country borders Chad?"),
    ("Set the alarm for 5 AM", "set an alarm for 5 am"),
    ("TURN IT OFF FOR US NOW", "turn it off for us now"),
    ("Can I have a plan?", "can i have the plan?"),
    ("How can I fix a tap?", "okay so how can I fix a tap"),
    ('Who wrote "The Hobbit"?', "who wrote \u201cThe Hobbit\u201d?"),
    ("Is Norman F. Boas alive?", "Tell me: is Norman F. Boas alive"),
    ("How do I order a card?", "Hi, quick one: how do I order a card?"),
    ("Are lions bigger than bears?", "What is bigger, bears or lions?"),
    ("Where is the museum?", "where's the museum"),
    ("How do I rotate a picture?", "What is a way of turning an image?"),
    ("Wake me at 7 am", "wake me up at seven in the morning"),
    ("Send $20 to Ann", "send 20 dollars to Ann"),
    ("How can I be more calm?", "How can I be less nervous?"),
    ("Who runs the BBC?", "Who runs the British Broadcasting Corporation?"),
    ("Explain --max-cost here", "explain --max-cost"),
    ("Trains from Oslo to Bergen", "Which trains go from Oslo to Bergen?"),
]


@pytest.mark.parametrize(("reason", "one", "other"), FORBIDDEN)
def test_a_difference_that_matters_is_vetoed_by_name(reason: str, one: str, other: str) -> None:
    assert veto(signature(one), signature(other)) == reason
    assert reason in REASONS


@pytest.mark.parametrize(("one", "other"), PASSED)
def test_a_harmless_difference_is_not_vetoed(one: str, other: str) -> None:
    assert veto(signature(one), signature(other)) == ""


@pytest.mark.parametrize(("reason", "one", "other"), FORBIDDEN)
def test_a_veto_is_the_same_either_way_round(reason: str, one: str, other: str) -> None:
    assert veto(signature(other), signature(one)) == reason


@given(st.text(max_size=80), st.text(max_size=80))
@settings(max_examples=80, deadline=None)
def test_any_two_texts_are_judged_the_same_either_way_round(one: str, other: str) -> None:
    a, b = signature(one), signature(other)
    assert veto(a, b) == veto(b, a)
    assert veto(a, a) == ""


@given(st.text(max_size=120))
@settings(max_examples=60, deadline=None)
def test_a_signature_is_read_from_a_store_as_it_was_written(text: str) -> None:
    signed = signature(text)
    assert codec.Decoder(Signature).decode(codec.encode(signed)) == signed


def test_the_table_of_opposites_holds_both_ways_and_is_large() -> None:
    assert len(OPPOSITES) > 600
    assert all((other, one) in OPPOSITES for one, other in OPPOSITES)
