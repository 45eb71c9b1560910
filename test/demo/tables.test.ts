/** Questions about tables and logs: the demo model's code runs, and every number is compared with one computed here. */
import { describe, expect, test } from 'vitest'
import { drive } from './drive.ts'
import { ACCESS, commonest, DAYS, fixed, groupBy, HITS, mean, median, sum, two, WEATHER } from './figures.ts'

const SALES =
  'city;sales amount;date\nNew York;"1,200.50";01/15/2024\nOslo;300;02/20/2024\nNew York;99.5;02/21/2024\nBergen;;03/01/2024\n'

const FILES: Readonly<Record<string, string>> = {
  'seattle-weather.csv': WEATHER,
  'access.log': ACCESS,
  'sales.csv': SALES,
  'cities.tsv': 'City\tPopulation\tIs capital\nOslo\t700000\tyes\nBergen\t290000\tno\nRome\t2800000\tyes\n',
}

const weather = { files: { 'seattle-weather.csv': WEATHER } }
const rain = DAYS.filter((day) => day.weather === 'rain')
const byMonth = groupBy(DAYS, (day) => day.date.slice(5, 7))
const byWeather = groupBy(DAYS, (day) => day.weather)
const wettest = [...DAYS].sort((a, b) => b.precipitation - a.precipitation)
const windiest = [...DAYS].sort((a, b) => b.wind - a.wind)[0]!
const [topIp] = commonest(HITS, (hit) => hit.ip)

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
    ['svg', 'did not understand'],
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
    ['did not understand'],
  ],
  ['seattle-weather.csv', 'average wind where weather is rain', [two(mean(rain.map((day) => day.wind)))]],
  ['seattle-weather.csv', 'What is the median of wind?', [two(median(DAYS.map((day) => day.wind)))]],
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
  ['access.log', 'What are the top 3 IPs in access.log?', [topIp![0], String(topIp![1])]],
  [
    'access.log',
    'requests by status',
    commonest(HITS, (hit) => String(hit.status)).flatMap(([status, count]) => [status, String(count)]),
    ['did not understand'],
  ],
  [
    'access.log',
    'total bytes by path',
    [String(sum(HITS.filter((hit) => hit.path === '/login').map((hit) => hit.bytes)))],
  ],
  ['sales.csv', 'total sales amount by city', ['New York', '1300', 'Oslo', '300']],
  ['sales.csv', 'average sales amount in New York', ['the mean of sales amount is 650', '2 of 4 rows']],
  ['sales.csv', 'average of sales amount by month', ['January', '1200.50', 'February', '199.75']],
  [
    'sales.csv',
    'Which month has the highest total in sales.csv?',
    ['January has the highest sum', 'only one with numbers'],
  ],
  ['cities.tsv', 'which city has the largest population?', ['Rome has the highest Population: 2800000']],
  ['cities.tsv', 'sum of populations where capital is yes', ['3500000']],
]

describe('a question about a table is answered with the right numbers, from code that ran', () => {
  test.each(CASES)('%s: %s', async (file, instruction, said, unsaid = []) => {
    const { output, calls, reasoning } = await drive(instruction, { files: { [file]: FILES[file]! } })
    for (const words of said) expect(output).toContain(words)
    for (const words of unsaid) expect(output).not.toContain(words)
    expect(calls.length).toBeGreaterThanOrEqual(2)
    expect(calls.every((call) => call.name === 'code_execution' && !call.output.includes('exit code'))).toBe(true)
    expect(reasoning[0]).toContain('demo model')
  })
})

describe('output files', () => {
  test('a chart is a well-formed SVG with a mark for each value', async () => {
    const { output, outputs, calls } = await drive('Plot the average temp_max by month', weather)
    expect(calls).toHaveLength(3)
    expect(output).toContain('outputs/mean-of-temp_max-by-calendar-month.svg')
    const svg = outputs.get('mean-of-temp_max-by-calendar-month.svg')!
    expect(svg).toMatch(/^<svg [^>]*>[\s\S]*<\/svg>\n$/)
    expect(svg.match(/<circle /g)).toHaveLength(12)
    expect(svg).toContain(
      `<title>August: ${mean(byMonth.get('08')!.map((day) => day.temp_max)).toPrecision(6)}</title>`,
    )
  })

  test('a result is saved where the instruction says, in full precision', async () => {
    const { outputs, output } = await drive(
      'Compute the mean wind by weather and save the result to means.csv',
      weather,
    )
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

describe('a question beyond the demo model gets an honest answer', () => {
  test.each([
    [
      'What is the average humidity in seattle-weather.csv?',
      /could not determine which column.*precipitation, temp_max/s,
    ],
    ['average temperature', /"temperature" could mean temp_max or temp_min/],
    ['average wind by supplier', /no column "supplier" to group by/],
    ['average wind where weather is not rain', /don't understand "not"/],
    ['how many days had more than 20 mm of precipitation?', /don't understand "than"/],
    ['average wind above 20', /don't know what 20 means/],
    ['mean of weather', /can't compute with weather/],
    ['What percentage of days were sunny?', /don't understand "percentage"/],
  ])('%s', async (instruction, said) => {
    const { output } = await drive(instruction, weather)
    expect(output).toMatch(said)
    expect(output).toMatch(/demo model.*Ask me, for example: "What is the average/s)
  })

  test('words that were not understood are listed', async () => {
    const { output } = await drive('how many sales were there in Paris?', { files: { 'sales.csv': SALES } })
    expect(output).toContain('did not understand "Paris"')
  })

  test('a file that is not attached, and one of several that is not named', async () => {
    expect((await drive('average price in prices.csv', { files: { 'sales.csv': SALES } })).output).toContain(
      'no file prices.csv here. Attached: sales.csv',
    )
    expect((await drive('what is the average?', { files: { 'sales.csv': SALES, 'a.csv': SALES } })).output).toContain(
      'Name the one you mean',
    )
  })

  test('a file without a table', async () => {
    const book = { files: { 'book.txt': 'The whale and the sea.\nCall me Ishmael.\n' } }
    expect((await drive('How many words does book.txt have?', book)).output).toMatch(
      /book\.txt has 2 lines of text\. I can only compute with tables/,
    )
  })

  test('a tool that is not enabled is named, and nothing is called', async () => {
    const { output, calls } = await drive('average wind by month', { ...weather, tools: ['file_read'] })
    expect(output).toContain('"tools": ["code_execution"]')
    expect(calls).toEqual([])
  })

  test('a file that cannot be read is reported with the end of the output', async () => {
    const { output } = await drive('average of a by b', { files: { 'a.csv': `a,b\n"${'x'.repeat(200_000)}",1\n` } })
    expect(output).toMatch(/could not read a\.csv: the code that I ran failed/)
    expect(output).toContain('field larger than field limit')
  })
})
