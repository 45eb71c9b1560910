/** A question that needs four of the 300 tools of three MCP servers. */
import { jsonAnswer, type Task } from '../task.ts'

export interface McpTool {
  readonly name: string
  readonly description: string
  readonly inputSchema: object
}

const SERVERS = ['crm', 'billing', 'operations'] as const
export type McpServerName = (typeof SERVERS)[number]

const SUBJECTS: Readonly<Record<McpServerName, readonly string[]>> = {
  crm: ['customer', 'contact', 'lead', 'deal', 'campaign', 'meeting', 'note', 'territory', 'partner', 'survey'],
  billing: ['invoice', 'payment', 'refund', 'subscription', 'tax', 'coupon', 'ledger', 'payout', 'dispute', 'quote'],
  operations: ['warehouse', 'shipment', 'vehicle', 'driver', 'route', 'pallet', 'return', 'supplier', 'shift', 'dock'],
}
const ACTIONS = ['list', 'get', 'create', 'update', 'archive', 'export', 'count', 'assign', 'tag', 'history'] as const

const ID = { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] }
const FILTER = { type: 'object', properties: { filter: { type: 'string' } } }

/** 100 tools of a server: ten actions on ten subjects. */
export function toolsOf(server: McpServerName): McpTool[] {
  return SUBJECTS[server].flatMap((subject) =>
    ACTIONS.map((action) => ({
      name: `${subject}_${action}`,
      description: `${action[0]!.toUpperCase()}${action.slice(1)} ${subject} records of the ${server} system.`,
      inputSchema: action === 'list' || action === 'count' || action === 'export' ? FILTER : ID,
    })),
  )
}

const INVOICES = [
  { id: 'I-31', customer: 'K-7', status: 'paid', due: '2025-01-10' },
  { id: 'I-32', customer: 'K-4', status: 'open', due: '2025-03-02' },
  { id: 'I-33', customer: 'K-9', status: 'open', due: '2025-02-14' },
  { id: 'I-34', customer: 'K-2', status: 'open', due: '2025-05-20' },
]

/** Results of the tools that hold data. All others have none. */
const DATA: Readonly<Record<string, (id: string) => unknown>> = {
  invoice_list: () => INVOICES,
  invoice_get: (id) => INVOICES.find((invoice) => invoice.id === id),
  customer_get: (id) => ({ id, name: `Customer ${id}`, contact: `P-${id.slice(2)}1`, warehouse: `W-${id.slice(2)}` }),
  contact_get: (id) => ({ id, name: `Person ${id}`, phone: `+47 555 ${id.slice(2)}` }),
  warehouse_get: (id) => ({ id, city: { 'W-9': 'Bergen', 'W-4': 'Malmö' }[id] ?? 'Paris' }),
}

export function callTool(name: string, { id = '' }: { readonly id?: string }): unknown {
  return DATA[name]?.(id) ?? { found: 0 }
}

const ANSWER = { phone: '+47 555 91', city: 'Bergen' }

export const manyTools: Task = {
  name: 'many-tools',
  about: 'a question that needs four of 300 MCP tools',
  needsServices: true,
  request: ({ mcpUrl }) => ({
    instruction:
      'Which customer has the open invoice with the earliest due date? Find the phone number of its contact and the city of its warehouse. ' +
      'Answer only with JSON: {"phone": …, "city": …}',
    mcp: SERVERS.map((name) => ({ name, url: mcpUrl(name) })),
  }),
  grade({ output }) {
    const answer = jsonAnswer(output)
    if (!answer) return 'the answer is not JSON'
    const wrong = Object.entries(ANSWER).find(([field, value]) => answer[field] !== value)
    return wrong && `${wrong[0]} is ${answer[wrong[0]]}, not ${wrong[1]}`
  },
}
