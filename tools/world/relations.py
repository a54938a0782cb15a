"""The relations of the graph: what each links or measures, its unit, and the bounds within which a number is believed.

Bounds are wide on purpose: they catch slips of the source (a city of 1.454 people) and not the unusual.
Units are the sources', in the spelling of `hynt.graph.units`, which turns them into SI. "1" is a count or a ratio.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

ENTITY, NUMBER, DATE = "entity", "number", "date"


@dataclass(frozen=True)
class Relation:
    """A relation carries entities, numbers or dates, never two of them."""

    label: str
    kind: str
    description: str
    unit: str = ""
    low: Decimal | None = None
    high: Decimal | None = None


_ENTITIES = """
agricultural product | a crop or animal product that the country produces most of, by weight where a rank is given
allotrope | qualifier: the form of the element that was measured
beverage | qualifier: the kind of drink
block | block of the periodic table that the element stands in
capital | seat of government as the Factbook names it
chamber | qualifier: the chamber of a legislature
chief of state | the person holding the office, in the Factbook's spelling (surname in capitals)
continent | continent of the country, by GeoNames
country | the country a city lies in
crystal structure | lattice of the solid element
currency | legal tender, with the time it was in use
discovered in | today's country of the place where the element was discovered
discoverer | qualifier: a person or laboratory credited with the discovery
electoral system | qualifier: how the chamber is elected
element series | family of elements, such as the noble gases
energy source | qualifier: what the energy or the emission comes from
ethnic group | a group named in the Factbook, with its share of the population
exports commodity | one of the country's largest exports by value
export partner | one of the largest buyers of the country's exports
Goldschmidt class | where the element gathers in the Earth: in rock, ore, iron or air
government type | form of government in the Factbook's words
group | group (column) of the periodic table
head of government | the person holding the office, in the Factbook's spelling (surname in capitals)
imports commodity | one of the country's largest imports by value
import partner | one of the largest sellers to the country
in currency | qualifier: the currency that an exchange rate counts in
lake | a major lake that lies in the country at least in part
language spoken | a language of the country, with the share of the population that uses it
lowest point | the lowest place of the country
member of | an international organisation that the country belongs to
natural resource | a resource named in the Factbook; chemical elements are linked as elements
parity | qualifier: parity of a nuclear state
period | period (row) of the periodic table
position | qualifier: the title of an office
age group | qualifier: the ages counted
religion | a religion named in the Factbook, with its share of the population
river | a major river that flows through the country
river part | qualifier: whether the river rises or ends in the country
role | qualifier: the kind of membership, or the official standing of a language
region | the map region of the Factbook
sector | qualifier: a part of the economy
separated from | qualifier: the state that the country became independent from
sex | qualifier: the sex counted
settlement | qualifier: urban or rural population
shares border with | a neighbour on land; each border is kept in one direction
spin state | qualifier: high or low spin of the ion
time zone | time zone of a city, by its name in the time zone database
top producer | a country that produces most of the element
top reserve holder | a country that holds most of the element's reserves
track | qualifier: the class of railway gauge
water type | qualifier: fresh or salt water
"""

_DATES = """
discovery year | year of the discovery of an element or, as a qualifier, of an isotope
end time | qualifier: when it ended
independence date | the first date that the Factbook gives, for some countries their founding
last election | qualifier: day the latest election of the chamber began
point in time | qualifier: the year the statement speaks of; a span of years is dated by its first
start time | qualifier: when it began
"""

_NUMBERS = """
agricultural land share | percent | 0 | 100 | share of the land that is used for farming
airports count | 1 | 0 | 20000 | airports and airfields in the country
alcohol consumption | L/year | 0 | 25 | litres of pure alcohol a year and person older than 14
area | km2 | 1 | 18000000 | land and inland water of the country
atomic number | 1 | 1 | 118 | protons in the nucleus
atomic weight | 1 | 1 | 300 | mass of an atom relative to a twelfth of carbon-12
birth rate | 1/1000/year | 0 | 60 | births a year for 1,000 people
boiling point | K | 1 | 7000 | temperature at which the element boils, at normal pressure
border length | km | 0 | 10000 | qualifier: length of the common border
carbon dioxide emissions | t/year | 0 | 15000000000 | emitted in a year, from energy
city population | 1 | 10000 | 40000000 | people within the city, by GeoNames, undated
coordination number | 1 | 1 | 14 | qualifier: neighbours of the ion
covalent radius | pm | 20 | 300 | radius of the atom in a single bond, by Pyykkö
crustal abundance | mg/kg | 0 | 500000 | how much of the Earth's crust the element is, by weight
death rate | 1/1000/year | 0 | 40 | deaths a year for 1,000 people
density | g/cm3 | 0 | 45 | mass of a volume of the element, at 295 K
education expenditure | percent | 0 | 30 | public spending on education, as a share of GDP
electricity consumption | kWh/year | 0 | 20000000000000 | electricity used in a year
electricity generation share | percent | 0 | 100 | share of a source in the electricity that is, or could be, made
electrification rate | percent | 0 | 100 | share of the population with access to electricity
electrified length | km | 0 | 200000 | qualifier: railway under electric power
electron affinity | eV | -4 | 4 | energy released when an electron is added
electronegativity | 1 | 0 | 4 | how strongly the atom draws electrons in a bond, on the Pauling scale
elevation | m | -500 | 9000 | qualifier: height over the sea
exchange rate | 1 | 0 | 200000 | units of the local currency for one US dollar
exports | USD | 0 | 10000000000000 | goods and services sold abroad in a year
forest share | percent | 0 | 100 | share of the land that is forest
GDP growth rate | percent | -70 | 70 | real growth of the gross domestic product in a year
GDP per capita PPP | USD | 100 | 300000 | gross domestic product per person, at purchasing power parity
GDP PPP | USD | 1000000 | 60000000000000 | gross domestic product, at purchasing power parity
GDP share by sector | percent | 0 | 100 | share of a sector in the value added
Gini index | 1 | 15 | 70 | inequality of income, from 0 (all have the same) to 100
health expenditure | percent | 0 | 40 | spending on health, as a share of GDP
heat of fusion | kJ/mol | 0 | 150 | energy needed to melt a mole of the element
heat of vaporization | kJ/mol | 0 | 1000 | energy needed to boil a mole of the element
highest elevation | m | 0 | 9000 | height of the country's highest point
imports | USD | 0 | 10000000000000 | goods and services bought abroad in a year
improved drinking water share | percent | 0 | 100 | share of the population with an improved source of drinking water
infant mortality rate | 1/1000 | 0 | 200 | deaths under one year of age for 1,000 live births
inflation rate | percent | -20 | 2000 | rise of consumer prices in a year
internet users share | percent | 0 | 100 | share of the population that uses the internet
ion charge | 1 | -4 | 9 | qualifier: charge of the ion in elementary charges
ionic radius | pm | 0 | 300 | effective radius of an ion of the element
ionization degree | 1 | 1 | 4 | qualifier: which electron is taken away
ionization energy | eV | 0 | 1500 | energy needed to take an electron away, the first or the one that is named
isotopic abundance | percent | 0 | 100 | share of the isotope in the natural element
land boundary length | km | 0 | 30000 | length of all land borders
latitude | degree | -90 | 90 | degrees north of the equator; south is negative
legislature seats | 1 | 5 | 3000 | seats in the chamber
length | km | 50 | 7000 | qualifier: length of the whole river
life expectancy | year | 20 | 100 | years a newborn can expect to live
literacy rate | percent | 0 | 100 | share of the population, of the ages the Factbook names, that can read and write
longitude | degree | -180 | 180 | degrees east of Greenwich; west is negative
mass number | 1 | 1 | 300 | qualifier: nucleons of the isotope
maternal mortality ratio | 1/100000 | 0 | 3000 | deaths for 100,000 live births
mean elevation | m | -50 | 5000 | mean height of the country over the sea
median age | year | 10 | 70 | half of the population is younger, half older
melting point | K | 1 | 5000 | temperature at which the element melts, at normal pressure
military expenditure | percent | 0 | 50 | spending on the military, as a share of GDP
mobile subscriptions per 100 inhabitants | 1 | 0 | 400 | subscriptions to a mobile telephone for 100 people
mother's mean age at first birth | year | 15 | 40 | mean age of mothers at the birth of their first child
net migration rate | 1/1000/year | -150 | 150 | people who come less those who leave, a year, for 1,000 people
nuclear spin | 1 | 0 | 10 | qualifier: in units of the reduced Planck constant
obesity rate | percent | 0 | 80 | share of adults who are obese
physician density | 1/1000 | 0 | 20 | physicians for 1,000 people
population | 1 | 1000 | 2000000000 | people who live in the country
population growth rate | percent | -15 | 15 | growth of the population in a year
ports count | 1 | 0 | 2000 | sea and river ports
poverty rate | percent | 0 | 100 | share of the population below the national poverty line
public debt | percent | 0 | 400 | debt of the government, as a share of GDP
railway length | km | 0 | 400000 | length of the country's railway lines, all or of one gauge
rank | 1 | 1 | 10 | qualifier: place in the source's ordered list, 1 is the largest
renewable water resources | m3/year | 1000000 | 10000000000000 | water that rain and rivers bring in a year
share | percent | 0 | 100 | qualifier: of the whole that the relation speaks of
surface area | km2 | 1 | 400000 | qualifier: of the lake, or of the country's part of it
term of office | year | 1 | 12 | qualifier: of a member of the chamber
thermal conductivity | W/(m K) | 0 | 3000 | how well the element conducts heat, at 25 °C
tobacco use | percent | 0 | 100 | share of the population older than 14 that uses tobacco
total fertility rate | 1 | 0 | 10 | children born to a woman
track gauge | m | 0.3 | 2 | qualifier: distance of the rails
unemployment rate | percent | 0 | 90 | share of the labour force without work
urban area population | 1 | 10000 | 50000000 | people in the built-up area of the city
urban population share | percent | 0 | 100 | share of the population that lives in cities
UTC offset | h | -12 | 14 | standard time ahead of UTC
van der Waals radius | pm | 50 | 400 | radius of the atom where it touches others unbound
women in legislature share | percent | 0 | 100 | share of women among the members of the chamber
youth unemployment rate | percent | 0 | 100 | share of the labour force aged 15 to 24 without work
"""


def _rows(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split(" | ")] for line in table.strip().splitlines()]


RELATIONS: dict[str, Relation] = {
    **{label: Relation(label, ENTITY, description) for label, description in _rows(_ENTITIES)},
    **{label: Relation(label, DATE, description, "date") for label, description in _rows(_DATES)},
    **{
        label: Relation(label, NUMBER, description, unit, Decimal(low), Decimal(high))
        for label, unit, low, high, description in _rows(_NUMBERS)
    },
}
"""Every relation by its label, which is also its id."""


DISPLAY = {
    "birth rate": "‰/year",
    "boiling point": "°C",
    "carbon dioxide emissions": "Mt/year",
    "death rate": "‰/year",
    "electricity consumption": "TWh/year",
    "infant mortality rate": "‰",
    "melting point": "°C",
    "net migration rate": "‰/year",
    "renewable water resources": "km3/year",
    "track gauge": "mm",
}
"""The units that people read, where these are not the sources'."""
