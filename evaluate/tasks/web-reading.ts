/** Reading of a catalog on a local web site: pages of a list, a page for each product, and data sheets. */
import { jsonAnswer, type Task } from '../task.ts'

const PRODUCTS = 45
const PAGE_SIZE = 9
const CITIES = ['Rotterdam', 'Oslo', 'Lyon', 'Turin', 'Cork']
const MAX_PRICE = 600

interface Pump {
  readonly code: string
  readonly price: number
  readonly city: string
  readonly litersPerMinute: number
}

/** Products with values that depend only on their number. */
const PUMPS: readonly Pump[] = Array.from({ length: PRODUCTS }, (_, i) => ({
  code: `PX-${100 + ((i * 37) % 900)}`,
  price: 200 + ((i * 131) % 700),
  city: CITIES[(i * 7) % CITIES.length]!,
  litersPerMinute: 40 + ((i * 53) % 211),
}))

/** The correct answer. */
export function bestPump(): Pump {
  const offered = PUMPS.filter(({ price, city }) => price < MAX_PRICE && city === 'Rotterdam')
  return offered.reduce((a, b) => (b.litersPerMinute > a.litersPerMinute ? b : a))
}

const page = (title: string, body: string) =>
  `<!doctype html><html><head><title>${title}</title></head><body><nav><a href="/pumps">Pumps</a> <a href="/about">About</a></nav><h1>${title}</h1>${body}</body></html>`

/** A page of the site. Undefined if there is none. */
export function catalogPage(url: URL): string | undefined {
  const { pathname: path, searchParams } = url
  if (path === '/') return page('Pump house', '<p>See our <a href="/pumps">pumps</a>.</p>')
  if (path === '/about') return page('About us', '<p>We sell pumps from five warehouses.</p>')
  if (path === '/pumps') {
    const number = Number(searchParams.get('page') ?? 1)
    const shown = PUMPS.slice((number - 1) * PAGE_SIZE, number * PAGE_SIZE)
    const items = shown.map(({ code }) => `<li><a href="/pumps/${code}">Pump ${code}</a></li>`)
    const isLast = number * PAGE_SIZE >= PUMPS.length
    const next = isLast ? '' : `<a rel="next" href="/pumps?page=${number + 1}">Next page</a>`
    return page('Pumps', `<ul>${items.join('')}</ul>${next}`)
  }
  const [, , code, sheet] = path.split('/')
  const pump = PUMPS.find((each) => each.code === code)
  if (!pump) return undefined
  if (sheet === undefined) {
    const facts = `<p>Price: ${pump.price} EUR. Warehouse: ${pump.city}.</p>`
    return page(`Pump ${code}`, `${facts}<p><a href="/pumps/${code}/data-sheet">Data sheet</a></p>`)
  }
  const cubicMeters = ((pump.litersPerMinute * 60) / 1_000).toFixed(2)
  return page(`Data sheet of ${code}`, `<table><tr><th>Flow</th><td>${cubicMeters} m³/h</td></tr></table>`)
}

const instruction = (
  site: URL,
) => `The catalog at ${site.href} lists pumps. Among those that cost less than ${MAX_PRICE} EUR and are in the
warehouse in Rotterdam, find the one with the highest flow. Read the pages with code. HTTP works through the proxy in http_proxy. Unset no_proxy and NO_PROXY first: they except the
name of this site.
Answer only with JSON: {"code": code of the pump, "litersPerMinute": its flow in liters a minute, rounded to a whole number}`

export const webReading: Task = {
  name: 'web-reading',
  about: 'a question whose answer is spread over the pages of a site',
  needsServices: true,
  request: ({ site }) => ({
    instruction: instruction(site),
    tools: ['code_execution'],
    network: { allow: [site.host] },
  }),
  grade({ output }) {
    const answer = jsonAnswer(output)
    if (!answer) return 'the answer is not JSON'
    const { code, litersPerMinute } = bestPump()
    if (answer.code !== code) return `code is ${answer.code}, not ${code}`
    return answer.litersPerMinute === litersPerMinute
      ? undefined
      : `flow is ${answer.litersPerMinute}, not ${litersPerMinute}`
  },
}
