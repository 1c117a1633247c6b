"""Small closed classes of English words: what carries grammar, courtesy and form rather than content."""

from typing import Final

from gateway.middleware.semantic_cache.words.phrases import Phrases


def words(text: str) -> frozenset[str]:
    """Split a table written as plain words."""
    return frozenset(text.split())


def pairs(text: str) -> dict[str, str]:
    """Split a table written as `from=to`; an underscore in the second stands for a space."""
    rows = (row.split("=", 1) for row in text.split())
    return {left: right.replace("_", " ") for left, right in rows}


ARTICLES: Final = words("a an the")
WH: Final = words("what who whom whose which when where why how")
DO: Final = words("do does did")
BE_NOW: Final = words("is are am be")
BE_PAST: Final = words("was were")
BE: Final = BE_NOW | BE_PAST | words("been being")
HAVE: Final = words("have has had")
MODALS: Final = words("can could will would shall should must may might")
AUXILIARIES: Final = DO | BE | HAVE | MODALS
SUBJECTS: Final = words("i you he she it we they there this that these those")
OBJECTS: Final = words("me him her us them")
POSSESSIVES: Final = words("my your his her its our their")
GENDERED: Final = words("he she him her his hers himself herself")
PERSONS: Final = SUBJECTS | OBJECTS | POSSESSIVES | words("mine yours theirs ours myself yourself")
PREPOSITIONS: Final = words(
    "in on at by for from to with without into onto over under above below between among through during"
    " before after since until till about against of off out up down near behind beside beyond within across"
    " along around past per than as via toward towards"
)
NEGATIONS: Final = words(
    "not no never without none nobody nothing neither nor nowhere cannot hardly non"
)
FUNCTION: Final = (
    ARTICLES
    | WH
    | AUXILIARIES
    | PERSONS
    | PREPOSITIONS
    | NEGATIONS
    | words(
        "and or but if then so too also just please any some such there here own whether while because"
    )
)
MEANING: Final = words(
    "or and only before after off out on in up down under over no not never without more less most least all"
    " every each both except but unless until since from to than other another first last next still already"
    " again always either if"
)
"""Function words that change an answer when they change."""

FILLERS: Final = words("um uh uhm erm er hmm pls please plz kindly")
OPENERS: Final = words(
    "so ok okay well hi hello hey hiya yo sorry morning evening afternoon good right now just um uh erm"
    " please pls plz kindly thanks cheers"
)
"""Dropped one by one from the start of a sentence; some only together with a comma."""
BARE_OPENERS: Final = words("so hi hello hey hiya um uh erm please pls plz kindly ok okay")
ASSISTANTS: Final = words("alexa siri cortana google bixby jarvis olly pda assistant computer")
CLOSERS: Final = words("please pls plz thanks cheers thx ty kindly ta")

OPENING_PHRASES: Final = Phrases.of("""
just wondering
i was just wondering
i was wondering
i am wondering
quick question
quick one
a quick question
just a quick question
silly question
silly question but
stupid question but
one more thing
one more question
sorry to bother you
sorry to bother you but
good morning
good afternoon
good evening
by the way
out of interest
out of curiosity
excuse me
hi there
hello there
hey there
thank you
""")
CLOSING_PHRASES: Final = Phrases(
    line.split()[::-1]
    for line in """
thank you
thank you very much
thank you so much
thanks a lot
thanks so much
many thanks
thanks in advance
thank you in advance
if you please
any ideas
please help
""".strip().splitlines()
)
"""Written backwards: they are looked for from the end."""
TELLING: Final = Phrases.of("""
can you tell me
could you tell me
can you please tell me
could you please tell me
will you tell me
would you tell me
please tell me
tell me
do you know
i want to know
i need to know
i would like to know
let me know
i was wondering
any idea
can you let me know
could you let me know
do you happen to know
""")
"""A frame around a question; dropped only where a question word follows."""

CONTRACTIONS: Final = pairs(
    "can't=can_not won't=will_not shan't=shall_not ain't=is_not let's=let_us i'm=i_am"
    " dont=do_not doesnt=does_not didnt=did_not isnt=is_not arent=are_not wasnt=was_not werent=were_not"
    " cant=can_not wont=will_not couldnt=could_not wouldnt=would_not shouldnt=should_not havent=have_not"
    " hasnt=has_not hadnt=had_not whats=what_is wheres=where_is hows=how_is whos=who_is whens=when_is"
    " im=i_am ive=i_have youre=you_are theyre=they_are thats=that_is theres=there_is cannot=can_not"
    " u=you ur=your pls=please plz=please thx=thanks wanna=want_to gonna=going_to gotta=got_to"
    " o'clock=oclock y'all=you_all ya=you"
)
ENDINGS: Final = pairs("n't=not 're=are 've=have 'll=will 'm=am 'd=would")
IS_AFTER: Final = words(
    "what who where when why how it that there here he she this which everything something nothing"
)
"""Words after which 's is the verb and no possessive."""

MISSPELT: Final = pairs(
    "tommorow=tomorrow tommorrow=tomorrow tomorow=tomorrow tmrw=tomorrow tomorrows=tomorrow"
    " recieve=receive recieved=received beleive=believe seperate=separate definately=definitely"
    " definitly=definitely accomodation=accommodation accomodate=accommodate adress=address"
    " adresses=addresses calender=calendar cancelation=cancellation cemetary=cemetery collegue=colleague"
    " comittee=committee commited=committed concious=conscious diffrence=difference diference=difference"
    " diffrent=different enviroment=environment existance=existence febuary=february wendesday=wednesday"
    " wensday=wednesday wednsday=wednesday thrusday=thursday saterday=saturday goverment=government"
    " grammer=grammar gaurantee=guarantee garantee=guarantee guarentee=guarantee immediatly=immediately"
    " independant=independent intrest=interest jewelery=jewellery knowlege=knowledge labratory=laboratory"
    " liason=liaison libary=library lisence=licence maintainance=maintenance maintenence=maintenance"
    " millenium=millennium minature=miniature mispell=misspell neccessary=necessary necesary=necessary"
    " nessecary=necessary noticable=noticeable occassion=occasion occured=occurred ocurred=occurred"
    " parliment=parliament payed=paid persistant=persistent posession=possession prefered=preferred"
    " privelege=privilege priviledge=privilege probly=probably publically=publicly questionaire=questionnaire"
    " reccomend=recommend recomend=recommend recomended=recommended reciept=receipt refered=referred"
    " rember=remember remeber=remember resturant=restaurant restaraunt=restaurant restraunt=restaurant"
    " rythm=rhythm shedule=schedule scedule=schedule schedual=schedule sucess=success succesful=successful"
    " successfull=successful suprise=surprise suprised=surprised tendancy=tendency therefor=therefore"
    " transfered=transferred truely=truly twelth=twelfth untill=until vaccum=vacuum vacume=vacuum"
    " vegitarian=vegetarian vegeterian=vegetarian emergancy=emergency emergeny=emergency wether=whether"
    " wich=which whcih=which teh=the hte=the adn=and thier=their waht=what wat=what becuase=because"
    " becasue=because acount=account accout=account accuont=account passwrod=password pasword=password"
    " apointment=appointment appointmnet=appointment appoinment=appointment avaliable=available"
    " availible=available avaiable=available availabilty=availability bussiness=business buisness=business"
    " cancle=cancel certificte=certificate certifcate=certificate chnage=change delivary=delivery"
    " delievery=delivery deliverey=delivery discription=description documnet=document electricty=electricity"
    " exchage=exchange insurence=insurance insurace=insurance invioce=invoice invoce=invoice"
    " langauge=language laguage=language mesage=message messege=message mortage=mortgage morgage=mortgage"
    " morgtage=mortgage numer=number nubmer=number passort=passport pasport=passport pharmcy=pharmacy"
    " phramacy=pharmacy prescripton=prescription perscription=prescription prescribtion=prescription"
    " refund's=refund refudn=refund subscribtion=subscription subscripton=subscription temprature=temperature"
    " temperture=temperature transacton=transaction transation=transaction weahter=weather wheather=weather"
    " bagage=baggage baggege=baggage allowence=allowance luggege=luggage lugage=luggage medcine=medicine"
    " medecine=medicine adventage=advantage arguement=argument basicly=basically begining=beginning"
    " bycicle=bicycle ceritficate=certificate completly=completely contruct=construct curency=currency"
    " deside=decide develope=develop dissapear=disappear embarass=embarrass excercise=exercise"
    " experiance=experience familar=familiar finaly=finally foriegn=foreign freind=friend fourty=forty"
    " happend=happened heigth=height incase=in_case managment=management oppurtunity=opportunity"
    " paralel=parallel peice=piece plumer=plumber posible=possible proccess=process programing=programming"
    " relevent=relevant reserch=research seprate=separate speach=speech strenght=strength technolgy=technology"
    " thankyou=thank_you tomatos=tomatoes pototo=potato truble=trouble unfortunatly=unfortunately"
    " usualy=usually visable=visible writting=writing yestarday=yesterday yesturday=yesterday"
    " colour=color colours=colors favourite=favorite favourites=favorites flavour=flavor honour=honor"
    " labour=labor neighbour=neighbor neighbours=neighbors behaviour=behavior rumour=rumor humour=humor"
    " harbour=harbor centre=center centres=centers theatre=theater theatres=theaters metre=meter metres=meters"
    " kilometre=kilometer kilometres=kilometers litre=liter litres=liters fibre=fiber grey=gray tyre=tire"
    " tyres=tires cheque=check cheques=checks programme=program programmes=programs catalogue=catalog"
    " dialogue=dialog licence=license defence=defense offence=offense jewellery=jewelry aluminium=aluminum"
    " organise=organize organised=organized organisation=organization recognise=recognize"
    " recognised=recognized authorise=authorize authorised=authorized authorisation=authorization"
    " apologise=apologize realise=realize customise=customize customised=customized optimise=optimize"
    " summarise=summarize analyse=analyze personalise=personalize prioritise=prioritize minimise=minimize"
    " maximise=maximize synchronise=synchronize travelling=traveling travelled=traveled cancelled=canceled"
    " cancelling=canceling labelled=labeled modelling=modeling enrol=enroll enrolment=enrollment"
    " fulfil=fulfill instalment=installment skilful=skillful mould=mold plough=plow storey=story"
    " pyjamas=pajamas mum=mom mums=moms mummy=mommy maths=math"
)
"""Common slips and British spellings, to one spelling."""
