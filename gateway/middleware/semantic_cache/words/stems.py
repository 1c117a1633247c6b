"""Inflection taken off English words, and nothing more: derived words stay apart."""

import re
from functools import lru_cache
from typing import Final

from gateway.middleware.semantic_cache.words.lexicon import pairs, words

_PAST: Final = pairs(
    "found=find led=lead left=leave"
    " went=go gone=go came=come bought=buy brought=bring thought=think taught=teach caught=catch sought=seek"
    " fought=fight sold=sell told=tell paid=pay said=say made=make had=have held=hold kept=keep"
    " slept=sleep meant=mean sent=send spent=spend lent=lend built=build lost=lose got=get gotten=get"
    " forgot=forget forgotten=forget sat=sit stood=stand understood=understand won=win ran=run began=begin"
    " begun=begin drank=drink drunk=drink sang=sing sung=sing swam=swim rang=ring rung=ring sank=sink"
    " sunk=sink ate=eat eaten=eat gave=give given=give took=take taken=take shook=shake shaken=shake"
    " wrote=write written=write drove=drive driven=drive rode=ride ridden=ride rose=rise risen=rise"
    " chose=choose chosen=choose froze=freeze frozen=freeze spoke=speak spoken=speak stole=steal stolen=steal"
    " broke=break broken=break woke=wake woken=wake wore=wear worn=wear tore=tear torn=tear swore=swear"
    " sworn=swear knew=know known=know grew=grow grown=grow threw=throw thrown=throw flew=fly flown=fly"
    " drew=draw drawn=draw saw=see seen=see fell=fall fallen=fall hid=hide hidden=hide bit=bite bitten=bite"
    " did=do done=do met=meet fed=feed bled=bleed sped=speed shot=shoot dealt=deal felt=feel heard=hear"
    " laid=lay hung=hang dug=dig stuck=stick struck=strike swung=swing proven=prove shown=show sewn=sew"
    " became=become overcame=overcome withdrew=withdraw withdrawn=withdraw mistook=mistake mistaken=mistake"
    " added=add banned=ban used=use died=die lied=lie tied=tie agreed=agree freed=free guaranteed=guarantee"
    " owed=owe owned=own shown=show bent=bend lit=light changed=change arranged=arrange challenged=challenge"
    " exchanged=exchange ranged=range"
)
_ONGOING: Final = pairs(
    "adding=add dying=die lying=lie tying=tie being=be seeing=see agreeing=agree using=use owing=owe"
    " changing=change arranging=arrange challenging=challenge exchanging=exchange charging=charge"
)
_PLURAL: Final = pairs(
    "children=child men=man women=woman people=people feet=foot teeth=tooth mice=mouse geese=goose"
    " knives=knife wives=wife lives=life leaves=leave wolves=wolf shelves=shelf halves=half thieves=thief"
    " loaves=loaf calves=calf buses=bus gases=gas viruses=virus bonuses=bonus statuses=status taxes=tax"
    " goes=go does=do has=have criteria=criterion phenomena=phenomenon analyses=analysis crises=crisis"
    " shoes=shoe toes=toe potatoes=potato tomatoes=tomato heroes=hero photos=photo ties=tie pies=pie dies=die"
    " lies=lie caches=cache headaches=headache niches=niche"
)
_FIXED: Final = words(
    "news goods glasses arms customs means contents savings woods airs minutes damages works premises"
    " securities earnings always perhaps gas bus plus less unless yes his hers its us this thus is was as"
    " series species physics mathematics politics economics statistics electronics ethics athletics"
    " gymnastics diabetes rabies herpes measles status virus bonus campus focus census previous various"
    " famous lens christmas overseas besides sometimes towards afterwards upwards downwards its iris chess"
    " during morning evening nothing something anything everything thing king ring string spring sting wing"
    " bring sing wedding building ceiling clothing sibling pudding housing feeling meeting painting"
    " bed red shed need feed seed speed weed breed indeed exceed proceed succeed embed hundred sacred naked"
    " bored boring interested interesting excited exciting tired tiring confused confusing annoyed annoying"
    " shocked shocking surprised surprising disappointed disappointing satisfied satisfying frightened"
    " frightening scared amazed amazing embarrassed embarrassing exhausted exhausting frustrated frustrating"
    " depressed depressing relaxed relaxing worried worrying married mixed united limited unlimited advanced"
    " employed unemployed united states windows teams slacks paris texas kansas mercedes netherlands"
    " philippines maldives bahamas wales thames james charles"
)
_DOUBLED: Final = re.compile(r"([bdgmnprt])\1$")
_GROUPS: Final = re.compile(r"[aeiouy]+")
_SHORT: Final = re.compile(r"^[^aeiou]*[aeiouy][^aeiouywx]$")
_WANTS_E: Final = re.compile(r"(?:[cvz]|[^aeioulw]l|dg|rg|[lnr]s|[aeiou]s|[^aeiou]r|u)$")


def _unit(word: str) -> str:
    """Bring the spellings of one base together."""
    if len(_GROUPS.findall(word)) < 2:
        return word
    if word.endswith("ie"):
        word = word[:-1]
    elif word.endswith("y") and word[-2] not in "aeiou":
        word = word[:-1] + "i"
    elif word.endswith("e") and len(_GROUPS.findall(word[:-1])) > 1:
        word = word[:-1]
    return word[:-1] if word.endswith("ll") else word


def _base(rest: str) -> str:
    """Restore what an ending took from a verb."""
    if len(_GROUPS.findall(rest)) < 2:
        if _DOUBLED.search(rest):
            return rest[:-1]
        if _SHORT.match(rest) or _WANTS_E.search(rest):
            return rest + "e"
        return rest
    if _DOUBLED.search(rest) or rest.endswith("ll"):
        return rest[:-1]
    return rest


def _inflected(word: str) -> tuple[str, str]:
    if word.endswith("ied") and len(word) > 4:
        return word[:-3] + "y", "ed"
    if word.endswith("ed") and _GROUPS.search(word[:-2]) and len(word) > 3:
        return _base(word[:-2]), "ed"
    if word.endswith("ing") and _GROUPS.search(word[:-3]) and len(word) > 4:
        return _base(word[:-3]), "ing"
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y", "s"
    if word.endswith(("sses", "xes", "zzes", "ches", "shes")):
        return word[:-2], "s"
    if word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > 3:
        return word[:-1], "s"
    return word, ""


@lru_cache(maxsize=32_768)
def stem(word: str) -> tuple[str, str]:
    """Return the base of a lower-case word and the ending it lost: `ed`, `ing`, `s` or nothing."""
    if word in _FIXED or not word.isalpha():
        return word, ""
    for table, ending in ((_PAST, "ed"), (_ONGOING, "ing"), (_PLURAL, "s")):
        base = table.get(word)
        if base is not None:
            return _unit(base), ending
    base, ending = _inflected(word)
    return _unit(base), ending
