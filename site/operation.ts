/** One operation of the API reference: its fields, response, errors, and examples in curl, TypeScript and Python. */
import { readFileSync } from 'node:fs'
import { CONSOLE_TAG, type JsonObject } from '../src/http/openapi/openapi.ts'
import { curl, EXAMPLES, type Operation } from './examples.ts'
import { fieldRows, parameterRows, schemaName, table, typeOf } from './fields.ts'
import { type Html, html, inline, prose } from './html.ts'
import { writtenJson } from './json.ts'
import { codeBlock } from './markdown.ts'

/** The recorded response of each operation, by operation id (test/docs/samples.ts). */
export const SAMPLES: Readonly<Record<string, unknown>> = JSON.parse(
  readFileSync(new URL('samples.json', import.meta.url), 'utf8'),
)

export type Schemas = Record<string, JsonObject>

export function renderOperation(operation: Operation, schemas: Schemas): Html {
  const { method, path, doc } = operation
  const id = String(doc.operationId)
  const parameters = (doc.parameters ?? []) as JsonObject[]
  const [body] = contentOf(doc.requestBody as JsonObject | undefined)
  const bodyName = body && schemaName(String(body.schema.$ref))
  const responses = doc.responses as Record<string, JsonObject>
  return html`<section class="operation" id="${id}">
<div>
<h2>${String(doc.summary)} <a class="anchor" href="#${id}" aria-label="Link to this section">#</a></h2>
<p class="route"><b class="${method}">${method}</b> <code>${path}</code></p>
${prose(String(doc.description))}
${table('Path', parameterRows(parameters, 'path'), 3)}
${table('Query', parameterRows(parameters, 'query'), 3)}
${table(
  'Headers',
  parameterRows(parameters, 'header').filter(({ name }) => name !== 'Api-Revision'),
  3,
)}
${bodyName === undefined ? '' : table('Body', fieldRows(schemas[bodyName] ?? {}), 3)}
<h3>Response</h3><p>${contentOf(responses['200']).map(
    ({ type, schema }, i) =>
      html`${i > 0 ? ' or ' : ''}<code>200</code> ${responseType(schema)} as <code>${type}</code>`,
  )}</p>
${errors(responses)}
</div>
${examples(operation)}
</section>`
}

function errors(responses: Record<string, JsonObject>): Html {
  const rows = Object.entries(responses).filter(([status]) => status !== '200')
  return html`<details class="errors"><summary>Errors: ${rows.map(([status]) => status).join(', ')}</summary><dl class="fields">${rows.map(
    ([status, { description }]) =>
      html`<div><dt><code>${status}</code></dt><dd>${inline(String(description))}</dd></div>`,
  )}</dl></details>`
}

/** Empty for the console's own calls: only the console makes them, with its session cookie. */
function examples(operation: Operation): Html {
  const { doc } = operation
  if ((doc.tags as string[]).includes(CONSOLE_TAG)) return html``
  const id = String(doc.operationId)
  const example = EXAMPLES.find((each) => each.id === id)
  return html`<div class="beside"><div class="tabs">${codeBlock(curl(operation), 'sh')}${
    example ? [codeBlock(example.ts, 'ts'), codeBlock(example.python, 'python')] : ''
  }</div>${id in SAMPLES ? sample(id) : ''}</div>`
}

function sample(id: string): Html {
  const response = SAMPLES[id]
  const [type, text] =
    typeof response === 'string'
      ? (['text/event-stream', codeBlock(response, 'http')] as const)
      : (['application/json', codeBlock(writtenJson(response, 56), 'json')] as const)
  return html`<div class="sample"><p><b>200</b> ${type}</p>${text}</div>`
}

interface Content {
  readonly type: string
  readonly schema: JsonObject
}

function contentOf(holder: JsonObject | undefined): Content[] {
  const content = (holder?.content ?? {}) as Record<string, { schema: JsonObject }>
  return Object.entries(content).map(([type, { schema }]) => ({ type, schema }))
}

function responseType(schema: JsonObject): Html {
  if (schema.$ref === undefined && Object.keys((schema.properties ?? {}) as object).length === 0) {
    return schema.type === 'object' ? html`an empty object` : html`the content`
  }
  return typeOf(schema)
}
