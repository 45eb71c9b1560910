/** Questions about tables and logs: the demo model's own code runs, and every figure is held against another way to it. */
import { describe, expect, test } from 'vitest'
import { drive } from './drive.ts'
import { ACCESS, commonest, DAYS, deviation, fixed, groupBy, HITS, mean, median, sum, two, WEATHER } from './figures.ts'

const SALES =
  'city;sales amount;date\nNew York;"1,200.50";01/15/2024\nOslo;300;02/20/2024\nNew York;99.5;02/21/2024\nBergen;;03/01/2024\n'
const USERS = JSON.stringify({
  version: 2,
  users: [
    { name: 'Ann', age: 31, address: { city: 'Oslo' } },
    { name: 'Bo', age: 45, address: { city: 'Bergen' } },
    { name: 'Cy', age: 30, address: { city: 'Oslo' } },
  ],
})

const FILES: Readonly<Record<string, string>> = {
  'seattle-weather.csv': WEATHER,
  'access.log': ACCESS,
  'sales.csv': SALES,
  'users.json': USERS,
  'cities.tsv': 'City\tPopulation\tIs capital\nOslo\t700000\tyes\nBergen\t290000\tno\nRome\t2800000\tyes\n',
}

const rain = DAYS.filter((day) => day.weather === 'rain')
const byMonth = groupBy(DAYS, (day) => day.date.slice(5, 7))
const byWeather = groupBy(DAYS, (day) => day.weather)
const wettest = [...DAYS].sort((a, b) => b.precipitation - a.precipitation)
const windiest = [...DAYS].sort((a, b) => b.wind - a.wind)[0]!
const [topIp] = commonest(HITS, (hit) => hit.ip)
const days = (test: (day: (typeof DAYS)[number]) => boolean) => DAYS.filter(test).length

/** File, instruction, what the answer says, what it does not say. */
const CASES: readonly [string, string, readonly string[], (readonly string[])?][] = [
  [
    'seattle-weather.csv',
    'What was the average maximum temperature by month in seattle-weather.csv?',
    [
      'August',
      fixed(mean(byMonth.get('08')!.map((day) => day.temp_max))),
      fixed(mean(byMonth.get('01')!.map((day) => day.temp_max))),
    ],
    ['svg'],
  ],
  [
    'seattle-weather.csv',
    'average temp_max by weather type',
    [
      `sun (${two(mean(byWeather.get('sun')!.map((day) => day.temp_max)))})`,
      fixed(mean(byWeather.get('drizzle')!.map((day) => day.temp_max))),
    ],
  ],
  ['seattle-weather.csv', 'How many rows are in seattle-weather.csv?', [`${DAYS.length} rows`]],
  [
    'seattle-weather.csv',
    'how many rainy days were there',
    [`${rain.length} of the ${DAYS.length} rows`, 'weather is rain'],
  ],
  [
    'seattle-weather.csv',
    'What is the average wind where weather is not rain?',
    [two(mean(DAYS.filter((day) => day.weather !== 'rain').map((day) => day.wind)))],
  ],
  [
    'seattle-weather.csv',
    'mean temp_max for snow and fog',
    [
      fixed(mean(byWeather.get('snow')!.map((day) => day.temp_max))),
      fixed(mean(byWeather.get('fog')!.map((day) => day.temp_max))),
    ],
    ['drizzle'],
  ],
  [
    'seattle-weather.csv',
    'What is the median and the standard deviation of wind?',
    [two(median(DAYS.map((day) => day.wind))), two(deviation(DAYS.map((day) => day.wind)))],
  ],
  [
    'seattle-weather.csv',
    'What is the maximum temperature?',
    [`maximum of temp_max is ${Math.max(...DAYS.map((day) => day.temp_max))}`],
  ],
  [
    'seattle-weather.csv',
    'lowest temperature in the file',
    [`minimum of temp_min is ${Math.min(...DAYS.map((day) => day.temp_min))}`],
  ],
  [
    'seattle-weather.csv',
    'average temperature',
    [
      'could mean temp_max or temp_min',
      two(mean(DAYS.map((day) => day.temp_max))),
      two(mean(DAYS.map((day) => day.temp_min))),
    ],
  ],
  [
    'seattle-weather.csv',
    'Total precipitation in 2013',
    [two(sum(DAYS.filter((day) => day.date.startsWith('2013')).map((day) => day.precipitation)))],
  ],
  [
    'seattle-weather.csv',
    'sum of precipitation per year',
    [...groupBy(DAYS, (day) => day.date.slice(0, 4))].map(([, year]) =>
      sum(year.map((day) => day.precipitation)).toFixed(1),
    ),
  ],
  [
    'seattle-weather.csv',
    'how many days had more than 20 mm of precipitation in 2014?',
    [`${days((day) => day.precipitation > 20 && day.date.startsWith('2014'))} of the`],
  ],
  [
    'seattle-weather.csv',
    'How many days had temp_max between 10 and 15?',
    [`${days((day) => day.temp_max >= 10 && day.temp_max <= 15)} of the`],
  ],
  [
    'seattle-weather.csv',
    'number of foggy days by year',
    [...groupBy(byWeather.get('fog')!, (day) => day.date.slice(0, 4))].map(([, fog]) => `█  ${fog.length}`.slice(1)),
  ],
  [
    'seattle-weather.csv',
    'which weather has the highest average wind?',
    [`snow has the highest mean of wind: ${two(mean(byWeather.get('snow')!.map((day) => day.wind)))}`],
  ],
  ['seattle-weather.csv', 'On which day was the wind highest?', [windiest.date, String(windiest.wind)]],
  [
    'seattle-weather.csv',
    'top 3 days by precipitation',
    wettest.slice(0, 3).flatMap((day) => [day.date, day.precipitation.toFixed(1)]),
    [wettest[3]!.date],
  ],
  ['seattle-weather.csv', 'What is the most common weather?', [`rain has the highest number of rows: ${rain.length}`]],
  [
    'seattle-weather.csv',
    'How many different weather values are there?',
    ['5 different values: drizzle, fog, rain, snow, sun'],
  ],
  [
    'seattle-weather.csv',
    'Which columns does seattle-weather.csv have? Describe them.',
    ['1461 rows and 6 columns', '| weather | 5 |', two(mean(DAYS.map((day) => day.wind)))],
  ],
  [
    'seattle-weather.csv',
    'What percentage of days were sunny?',
    [`(${two((100 * byWeather.get('sun')!.length) / DAYS.length)}%)`],
  ],
  [
    'seattle-weather.csv',
    'what was the hottest month?',
    [`August has the highest mean of temp_max: ${two(mean(byMonth.get('08')!.map((day) => day.temp_max)))}`],
  ],
  ['access.log', 'What are the top 3 IPs in access.log?', [topIp![0], String(topIp![1])]],
  [
    'access.log',
    'how many 404 errors are in access.log?',
    [`${HITS.filter((hit) => hit.status === 404).length} of the ${HITS.length} rows`],
  ],
  ['access.log', 'How many errors?', [`${HITS.filter((hit) => hit.status >= 400).length} of the`]],
  [
    'access.log',
    'which path has the most 5xx errors',
    [
      commonest(
        HITS.filter((hit) => hit.status >= 500),
        (hit) => hit.path,
      )[0]![0],
    ],
  ],
  [
    'access.log',
    'requests by status',
    commonest(HITS, (hit) => String(hit.status)).flatMap(([status, count]) => [status, String(count)]),
  ],
  [
    'access.log',
    'how many requests came from 192.0.2.11?',
    [`${HITS.filter((hit) => hit.ip === '192.0.2.11').length} of the`],
  ],
  [
    'access.log',
    'total bytes by path',
    [String(sum(HITS.filter((hit) => hit.path === '/login').map((hit) => hit.bytes)))],
  ],
  ['sales.csv', 'total sales by city', ['New York', '1300', 'Oslo', '300'], ['Bergen']],
  ['sales.csv', 'average sales amount in New York', ['the mean of sales amount is 650', '2 of 4 rows']],
  ['sales.csv', 'average of sales amount by month', ['January', '1200.50', 'February', '199.75']],
  ['sales.csv', 'how many sales after 2024-02-20?', ['2 of the 4 rows', 'date is after 2024-02-20']],
  ['sales.csv', 'total sales amount by month before 2024-02-21', ['1200.5', '300'], ['March', '399.5']],
  ['sales.csv', 'sort by sales amount, descending', ['| New York | 1,200.50 | 01/15/2024 |\n| Oslo | 300 |']],
  ['users.json', 'average age by city in users.json', ['Bergen (45)', 'Oslo (30.5)']],
  ['users.json', 'How many users are in users.json?', ['3 rows']],
  ['users.json', 'who is the oldest user?', ['| Bo | 45 |'], ['Ann']],
  ['cities.tsv', 'which city has the largest population?', ['Rome has the highest Population: 2800000']],
  ['cities.tsv', 'sum of populations where capital is yes', ['3500000']],
]

describe('a question about a table is answered with the right figures, from code that ran', () => {
  test.each(CASES)('%s: %s', async (file, instruction, said, unsaid = []) => {
    const { output, calls, reasoning } = await drive(instruction, { files: { [file]: FILES[file]! } })
    for (const words of said) expect(output).toContain(words)
    for (const words of unsaid) expect(output).not.toContain(words)
    expect(calls.length).toBeGreaterThanOrEqual(2)
    expect(calls.every((call) => call.name === 'code_execution' && !call.output.includes('exit code'))).toBe(true)
    expect(reasoning[0]).toContain('demo model')
  })
})

describe('files that come out', () => {
  test('a chart is a well-formed SVG with a mark for each value', async () => {
    const { output, outputs, calls } = await drive('Plot the average temp_max by month', {
      files: { 'seattle-weather.csv': WEATHER },
    })
    expect(calls).toHaveLength(3)
    expect(output).toContain('outputs/mean-of-temp_max-by-calendar-month.svg')
    const svg = outputs.get('mean-of-temp_max-by-calendar-month.svg')!
    expect(svg).toMatch(/^<svg [^>]*>[\s\S]*<\/svg>\n$/)
    expect(svg.match(/<circle /g)).toHaveLength(12)
    expect(svg).toContain(
      `<title>August: ${mean(byMonth.get('08')!.map((day) => day.temp_max)).toPrecision(6)}</title>`,
    )
  })

  test('a histogram has every row in one of its bars', async () => {
    const { output } = await drive('histogram of wind', { files: { 'seattle-weather.csv': WEATHER } })
    const counts = [...output.matchAll(/^ {4}[\d.]+ to [\d.]+ .* (\d+)$/gm)].map((match) => Number(match[1]))
    expect(counts).toHaveLength(10)
    expect(sum(counts)).toBe(DAYS.length)
  })

  test('a result is saved where the instruction says, in full precision', async () => {
    const { outputs, output } = await drive('Compute the mean wind by weather and save the result to means.csv', {
      files: { 'seattle-weather.csv': WEATHER },
    })
    expect(output).toContain('outputs/means.csv')
    const rows = outputs
      .get('means.csv')!
      .trim()
      .split('\n')
      .map((line) => line.split(','))
    expect(rows[0]).toEqual(['weather', 'mean of wind'])
    expect(rows).toHaveLength(6)
    for (const [weather, value] of rows.slice(1)) {
      expect(Number(value)).toBeCloseTo(mean(byWeather.get(weather!)!.map((day) => day.wind)), 9)
    }
  })
})

describe('what can not be made out is said, with what there is', () => {
  test('an unknown column', async () => {
    const { output } = await drive('What is the average humidity in seattle-weather.csv?', {
      files: { 'seattle-weather.csv': WEATHER },
    })
    expect(output).toMatch(/could not tell which column.*precipitation, temp_max, temp_min and wind/s)
  })

  test.each([
    ['total sales amount in the Rome city', 'No city is "Rome". Its values are Bergen, New York and Oslo.'],
    ['total sales amount by supplier', 'no column "supplier" to group by'],
    ['how many sales were there in Paris?', 'could make nothing of "Paris"'],
  ])('a word that the table does not know is never passed over: %s', async (instruction, said) => {
    expect((await drive(instruction, { files: { 'sales.csv': SALES } })).output).toContain(said)
  })

  test('numbers asked of a column of words', async () => {
    const { output } = await drive('mean of weather', { files: { 'seattle-weather.csv': WEATHER } })
    expect(output).toContain("can't compute the mean of weather")
  })

  test('a file that is not attached, and one of several that is not named', async () => {
    expect((await drive('average price in prices.csv', { files: { 'sales.csv': SALES } })).output).toContain(
      'no file prices.csv here. Attached: sales.csv',
    )
    expect(
      (await drive('what is the average?', { files: { 'sales.csv': SALES, 'users.json': USERS } })).output,
    ).toContain('Name the one you mean')
  })

  test('a tool that is not enabled is named, and nothing is called', async () => {
    const { output, calls } = await drive('average age in users.json', {
      files: { 'users.json': USERS },
      tools: ['file_read'],
    })
    expect(output).toContain('"tools": ["code_execution"]')
    expect(calls).toEqual([])
  })

  test('a file that is not what its name says is reported as the failure that it is', async () => {
    const { output } = await drive('how many users are in users.json?', { files: { 'users.json': '{"users": [' } })
    expect(output).toMatch(/could not read users\.json: the code that I ran failed/)
    expect(output).toContain('JSONDecodeError')
  })
})
