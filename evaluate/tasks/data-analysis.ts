/** Analysis of two messy CSV files: duplicated rows, two date formats, cancelled orders, and a join. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { jsonAnswer, type Task } from '../task.ts'

const FOLDER = join(import.meta.dirname, 'data-analysis')
const NAMES = ['orders.csv', 'customers.csv']
const content = (name: string) => readFileSync(join(FOLDER, name), 'utf8')

const INSTRUCTION = `The files orders.csv and customers.csv come from a shop.

- An order may be exported more than once: the same id is the same order, and counts once.
- Dates are YYYY-MM-DD, or DD/MM/YYYY in rows of the old system.
- Orders with the status cancelled bring no revenue. Revenue is quantity times unit price.

Find the country of the customers with the highest revenue in the second quarter of 2025 (April to June).
Answer only with JSON: {"country": name, "revenue": number with two decimals, "orders": number of orders of that country in that quarter}`

function parse(name: string): Record<string, string>[] {
  const [head = '', ...lines] = content(name).trim().split('\n')
  const columns = head.split(',')
  return lines.map((line) => Object.fromEntries(line.split(',').map((cell, i) => [columns[i]!, cell])))
}

/** The correct answer, computed from the files. */
export function bestCountry(): { readonly country: string; readonly revenue: number; readonly orders: number } {
  const countries = new Map(parse('customers.csv').map(({ id, country }) => [id, country!]))
  const orders = new Map(parse('orders.csv').map((order) => [order.id, order]))
  const found = new Map<string, { revenue: number; orders: number }>()
  for (const { date = '', status, customer, quantity, unit_price } of orders.values()) {
    const [day, month, year] = date.split('/')
    const iso = month === undefined ? date : `${year}-${month}-${day}`
    if (status === 'cancelled' || iso < '2025-04-01' || iso > '2025-06-30') continue
    const country = countries.get(customer)!
    const sum = found.get(country) ?? { revenue: 0, orders: 0 }
    found.set(country, { revenue: sum.revenue + Number(quantity) * Number(unit_price), orders: sum.orders + 1 })
  }
  const [country, best] = [...found].reduce((a, b) => (b[1].revenue > a[1].revenue ? b : a))
  return { country, ...best }
}

export const dataAnalysis: Task = {
  name: 'data-analysis',
  about: 'revenue by country from two messy CSV files',
  needsServices: false,
  request: () => ({
    instruction: INSTRUCTION,
    tools: ['code_execution'],
    files: NAMES.map((name) => ({ name, content: content(name) })),
  }),
  grade({ output }) {
    const answer = jsonAnswer(output)
    if (!answer) return 'the answer is not JSON'
    const right = bestCountry()
    if (answer.country !== right.country) return `country is ${answer.country}, not ${right.country}`
    if (Math.abs(Number(answer.revenue) - right.revenue) > 0.01)
      return `revenue is ${answer.revenue}, not ${right.revenue}`
    return answer.orders === right.orders ? undefined : `orders is ${answer.orders}, not ${right.orders}`
  },
}
