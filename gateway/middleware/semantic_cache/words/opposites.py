"""Words that exclude each other: opposites, and members of one closed class."""

from typing import Final

from gateway.middleware.semantic_cache.words.stems import stem
from gateway.middleware.semantic_cache.words.synonyms import shared_word

_OPPOSITES: Final = """
open/close open/shut increase/decrease increase/reduce increase/lower raise/lower raise/reduce raise/cut
up/down on/off in/out enable/disable activate/deactivate include/exclude accept/reject accept/decline
accept/refuse approve/reject approve/deny approve/decline allow/forbid allow/block allow/deny allow/prevent
allow/prohibit permit/forbid permit/deny permit/ban add/remove add/delete add/subtract add/drop insert/delete
insert/remove create/delete create/destroy create/remove make/break buy/sell buy/rent buy/lease rent/lease
borrow/lend lend/repay pay/receive pay/owe send/receive give/take give/get give/receive push/pull start/stop
start/end start/finish begin/end begin/finish begin/stop start/quit launch/close continue/stop resume/pause
resume/stop play/pause play/stop pause/continue lock/unlock block/unblock freeze/unfreeze mute/unmute
subscribe/unsubscribe follow/unfollow install/uninstall connect/disconnect link/unlink attach/detach
load/unload pack/unpack wrap/unwrap zip/unzip upload/download import/export encrypt/decrypt encode/decode
compress/decompress compress/extract save/delete save/spend save/waste save/discard keep/delete keep/discard
keep/remove keep/lose win/lose find/lose gain/lose earn/spend deposit/withdraw debit/credit enroll/withdraw
enter/exit enter/leave arrive/depart arrive/leave come/go stay/leave join/leave join/quit opt/withdraw
login/logout check-in/check-out register/cancel register/unregister book/cancel reserve/cancel order/cancel
renew/cancel upgrade/downgrade promote/demote hire/fire employ/dismiss open/lock show/hide reveal/hide
display/hide expand/collapse maximize/minimize expose/conceal appear/disappear rise/fall climb/descend
ascend/descend grow/shrink expand/contract extend/shorten lengthen/shorten speed/slow accelerate/decelerate
accelerate/brake heat/cool warm/cool melt/freeze boil/freeze fill/empty wet/dry lift/drop pick/drop
build/demolish build/destroy construct/demolish fix/break repair/break repair/damage protect/harm
protect/attack attack/defend help/hinder support/oppose agree/disagree like/dislike love/hate like/hate
trust/distrust believe/doubt remember/forget know/ignore learn/forget praise/criticize praise/blame
encourage/discourage succeed/fail pass/fail live/die born/die marry/divorce married/divorced married/single
merge/split join/split unite/divide combine/separate multiply/divide before/after early/late earlier/later
first/last next/previous next/last former/latter past/future ancient/modern old/new old/young new/used
day/night morning/evening morning/night morning/afternoon dawn/dusk sunrise/sunset today/tomorrow
today/yesterday tomorrow/yesterday summer/winter weekday/weekend always/never often/rarely often/seldom
often/never sometimes/never all/none every/none everybody/nobody everyone/nobody both/neither many/few
much/little more/less most/least more/fewer max/min maximum/minimum upper/lower top/bottom high/low
higher/lower highest/lowest tall/short long/short longer/shorter longest/shortest big/small bigger/smaller
biggest/smallest large/small larger/smaller largest/smallest wide/narrow thick/thin fat/thin fat/skinny
heavy/light heavier/lighter deep/shallow near/far close/far nearest/furthest inside/outside indoor/outdoor
internal/external inner/outer front/back front/rear forward/backward forwards/backwards left/right north/south
east/west northern/southern eastern/western above/below over/under upstairs/downstairs upstream/downstream
inbound/outbound incoming/outgoing arrival/departure entrance/exit source/destination home/abroad
domestic/foreign domestic/international local/remote local/national local/global national/international
online/offline online/in-store public/private personal/business private/business personal/corporate
manual/automatic full/empty full/half full/part whole/part free/paid free/busy busy/quiet included/excluded
optional/mandatory optional/required optional/compulsory voluntary/compulsory legal/illegal lawful/unlawful
guilty/innocent right/wrong correct/wrong true/false real/fake genuine/fake good/bad good/evil better/worse
best/worst positive/negative pro/con advantage/disadvantage benefit/drawback benefit/risk pros/cons
strength/weakness profit/loss asset/liability income/expense revenue/cost supply/demand import/exports
strong/weak stronger/weaker hard/soft hard/easy difficult/easy simple/complex simple/complicated rough/smooth
sharp/blunt hot/cold hotter/colder warm/cold warmer/cooler dry/wet fast/slow faster/slower quick/slow
loud/quiet louder/quieter noisy/quiet bright/dark brighter/darker brighter/dimmer dim/brighten light/dark
clean/dirty rich/poor richer/poorer wealthy/poor cheap/expensive cheaper/dearer cheapest/dearest
cheapest/priciest safe/dangerous safe/unsafe safe/risky healthy/sick healthy/unhealthy happy/sad happy/unhappy
cheerful/gloomy calm/angry calm/nervous patient/impatient brave/cowardly brave/fearful confident/shy
confident/insecure shy/outgoing introverted/extroverted optimistic/pessimistic hopeful/hopeless active/passive
active/inactive lazy/hardworking lazy/industrious smart/stupid clever/stupid intelligent/stupid wise/foolish
polite/rude kind/cruel kind/mean gentle/harsh generous/stingy generous/selfish selfish/selfless
greedy/generous humble/arrogant modest/arrogant humble/proud honest/dishonest loyal/disloyal friendly/hostile
friendly/unfriendly trusting/suspicious religious/secular religious/atheist liberal/conservative
progressive/conservative flexible/rigid tolerant/intolerant careful/careless cautious/reckless organized/messy
tidy/messy responsible/irresponsible mature/immature visible/invisible permanent/temporary fixed/variable
fixed/flexible static/dynamic regular/irregular normal/abnormal common/rare usual/unusual natural/artificial
raw/cooked fresh/stale alive/dead male/female man/woman boy/girl husband/wife mother/father mom/dad
brother/sister son/daughter uncle/aunt nephew/niece king/queen landlord/tenant employer/employee buyer/seller
lender/borrower teacher/student doctor/patient parent/child adult/child host/guest client/server
sender/recipient sender/receiver attacker/victim winner/loser friend/enemy hero/villain leader/follower
theory/practice question/answer cause/effect input/output read/write get/set push/pop encode/parse sync/async
ascending/descending horizontal/vertical row/column width/height length/width odd/even singular/plural
noun/verb prefix/suffix lowercase/uppercase lower/upper sweet/sour sweet/savory salty/sweet vegan/meat
vegetarian/meat virus/bacteria artery/vein acid/base solid/liquid liquid/gas proton/electron positive/neutral
credit/debit gross/net simple/compound savings/checking current/savings billing/delivery billing/shipping
pickup/delivery single/return single/double single/joint one-way/return one-way/round-trip economy/business
undergraduate/postgraduate undergraduate/master bachelor/master full-time/part-time temporary/permanent
contents/buildings prepaid/postpaid with/without for/against and/or can/cannot either/both only/also
inhale/exhale export/restore backup/restore lower/lift dim/brighten tighten/loosen strengthen/weaken
improve/worsen improve/harm cure/cause prevent/cause gain/shed thicken/thin soften/harden admit/deny
confirm/deny confirm/cancel confirm/dispute grant/revoke grant/deny assign/unassign hide/unhide pin/unpin
archive/unarchive archive/restore undo/redo delete/restore delete/recover cancel/keep cancel/reinstate
cancel/restart cancel/resume remove/keep forbid/require ban/allow stop/keep avoid/seek avoid/attract avoid/use
reward/punish rejected/approved refundable/nonrefundable win/draw attend/miss catch/miss catch/throw hit/miss
teach/learn lead/follow speak/listen ask/answer ask/tell question/reply wake/sleep sit/stand lie/stand
walk/run float/sink push/drag succeed/precede export/import innocent/liable employed/unemployed major/minor
senior/junior master/slave primary/secondary primary/backup maternal/paternal maternity/paternity
legal/unlawful legally/illegally legal/prohibited legally/prohibited legal/forbidden lawful/illegal
lawful/prohibited lawfully/illegally lawfully/unlawfully lawfully/illegal permitted/prohibited
allowed/prohibited allowed/illegal allowed/forbidden fair/unlawful fair/wrongful valid/void valid/invalid
working/broken working/faulty properly/fault properly/faulty properly/badly fine/faulty well/unwell
eat/avoid drink/avoid take/avoid
inward/outward clockwise/anticlockwise clockwise/counterclockwise deductible/taxable guest/member plus/minus
"""

# A line that is set in goes on with the one before.
_CLASSES: Final = """
january february march april may june july august september october november december
monday tuesday wednesday thursday friday saturday sunday
spring summer autumn winter
breakfast lunch dinner brunch
red blue green yellow pink purple orange white black brown gray violet cyan turquoise magenta gold silver
kitchen bathroom bedroom garage hallway garden office basement attic lounge study balcony livingroom toilet
    porch cellar
second minute hour day week month quarter year decade century
monthly weekly daily yearly annual hourly quarterly
dollar euro pound yen rupee yuan peso franc krona usd gbp eur inr jpy cny cad aud bitcoin
windows mac macos linux ios android ubuntu
iphone samsung pixel huawei
python java javascript typescript ruby rust go php kotlin swift perl scala haskell
mysql postgres postgresql mongodb sqlite oracle redis
chrome firefox safari edge opera
visa mastercard amex paypal klarna
bus train plane car bike ferry tram taxi subway boat ship
dog cat fish bird rabbit hamster horse cow sheep pig goat chicken duck snake lizard turtle frog monkey rat
    mouse spider
squirrel lobster crab shark whale lion tiger bear wolf elephant iguana tarantula hedgehog parrot ferret
beef pork lamb chicken turkey tofu salmon tuna
pizza pasta burger sushi curry salad lasagna taco soup rice quinoa
chinese italian indian mexican thai japanese french greek vietnamese korean spanish turkish
english french german spanish italian portuguese dutch russian chinese japanese korean arabic hindi polish
    swedish
england scotland wales ireland france germany spain italy portugal austria australia japan china india
    canada mexico brazil
russia poland sweden norway denmark finland greece turkey egypt israel usa america uk singapore thailand
    vietnam
london paris rome berlin madrid lisbon vienna tokyo beijing mumbai delhi sydney toronto dublin edinburgh
    glasgow
manchester bristol birmingham leeds liverpool cardiff chicago boston seattle denver austin dallas houston
    miami atlanta
football soccer basketball baseball tennis golf hockey cricket rugby volleyball swimming running cycling
    boxing skiing
knee hip elbow shoulder wrist ankle thumb toe heel finger neck back arm leg foot hand head nose ear eye
    hamstring
mother father brother sister son daughter uncle aunt cousin grandmother grandfather wife husband
bachelor master doctorate phd
student teacher adult child senior baby toddler teenager
email phone letter fax chat sms
north south east west
gluten nut dairy egg soy lactose
rock jazz pop classical blues country metal rap reggae
sugar salt flour butter milk cheese egg bread
ibuprofen paracetamol aspirin amoxicillin naproxen insulin
"""


def _settled(word: str) -> str:
    return shared_word(stem(word)[0])


def _opposite_pairs() -> frozenset[tuple[str, str]]:
    found: set[tuple[str, str]] = set()
    for pair in _OPPOSITES.split():
        left, _, right = pair.partition("/")
        one, other = _settled(left), _settled(right)
        found |= {(one, other), (other, one)}
    return frozenset(found)


def _members() -> dict[str, frozenset[int]]:
    found: dict[str, set[int]] = {}
    for number, line in enumerate(_CLASSES.replace("\n    ", " ").strip().split("\n")):
        for word in line.split():
            found.setdefault(_settled(word), set()).add(number)
    return {word: frozenset(numbers) for word, numbers in found.items()}


OPPOSITES: Final = _opposite_pairs()
MEMBERS: Final = _members()
_SURE: Final = ("un", "in", "im", "ir", "il", "dis", "non", "mis", "anti")


def opposed(left: str, right: str) -> bool:
    """Tell whether two stems exclude each other by meaning or by a prefix."""
    if (left, right) in OPPOSITES:
        return True
    short, long = (left, right) if len(left) < len(right) else (right, left)
    return len(short) > 3 and long.endswith(short) and long[: -len(short)] in _SURE


def same_class(left: str, right: str) -> bool:
    """Tell whether two different stems are members of one closed class: two colours, two months."""
    mine = MEMBERS.get(left)
    return (
        mine is not None and left != right and not mine.isdisjoint(MEMBERS.get(right, frozenset()))
    )
