/** The API reference, from the OpenAPI document: operations with their examples, events, limits, versioning, objects. */
import { readFileSync } from 'node:fs'
import type { Limits, Range } from '../src/domain/limits.ts'
import { EVENTS, EVENTS_TEXT, INTRODUCTION } from '../src/http/openapi/api-texts.ts'
import { CONSOLE_TAG, type JsonObject, schemasIn } from '../src/http/openapi/openapi.ts'
import { BEGINNINGS, curl, EXAMPLES, type Operation } from './examples.ts'
import { fieldRows, parameterRows, schemaName, table, typeOf } from './fields.ts'
import { type Html, html, inline, prose } from './html.ts'
import { writtenJson } from './json.ts'
import { codeBlock, type Heading, type Page, type Passage } from './markdown.ts'

/** What each call answered when the tests last recorded it, by operation (test/docs/samples.ts). */
const samples: Record<string, unknown> = JSON.parse(readFileSync(new URL('samples.json', import.meta.url), 'utf8'))

/** The pages that are made from the document of everything that is served, by name. The console's own calls have a page of their own. */
export function renderReference(document: JsonObject, limits: Limits): ReadonlyMap<string, Page> {
  const tags = (document.tags as { name: string; description: string }[]).map((tag) => ({
    ...tag,
    operations: operationsOf(document, tag.name),
  }))
  const schemas = (document.components as JsonObject).schemas as Record<string, JsonObject>
  const ours = tags.filter(({ name }) => name !== CONSOLE_TAG)
  const consoles = tags.filter(({ name }) => name === CONSOLE_TAG)
  return new Map([
    ['reference', callsPage(document, ours, schemas, limits)],
    ['objects', objectsPage(schemas, [namedBy(ours, schemas), namedBy(consoles, schemas)])],
    ['console-api', consolePage(consoles, schemas)],
  ])
}

type Schemas = Record<string, JsonObject>

interface Tag {
  readonly name: string
  readonly description: string
  readonly operations: readonly Operation[]
}

function callsPage(document: JsonObject, tags: readonly Tag[], schemas: Schemas, limits: Limits): Page {
  const body = html`<h1 id="api-reference">API reference</h1>
${prose(INTRODUCTION)}
<p>As a document for machines: <a href="openapi.json">openapi.json</a>, at <code>/openapi.json</code> of any server (OpenAPI ${String(document.openapi)}). What the errors
mean is told in <a href="errors.html">Errors</a>, what the objects hold in <a href="objects.html">Objects</a>.</p>
<p>Examples in TypeScript and Python use the <a href="typescript.html">clients</a>, and begin with</p>
<div class="tabs">${Object.entries(BEGINNINGS).map(([language, text]) => codeBlock(text, language))}</div>
${tags.map((tag) => tagSection(tag, schemas))}
${events()}
${limitsSection(limits)}
${versioning(String((document.info as JsonObject).version))}`
  const rest = ['Events', 'Limits', 'Versioning'].map((text) => ({ depth: 2, text, id: anchor(text) }))
  const told = { heading: 'Events', id: 'events', text: EVENTS.map(({ name, when }) => `${name} ${when}`).join('\n') }
  return {
    title: 'API reference',
    headings: [...headingsOf(tags), ...rest],
    passages: [...passagesOf(tags), told],
    body,
  }
}

/** The objects that these calls take or answer, with the objects inside them. */
function namedBy(tags: readonly Tag[], schemas: Schemas): ReadonlySet<string> {
  return schemasIn(
    tags.map(({ operations }) => operations.map(({ doc }) => doc)),
    schemas,
  )
}

/** Those of the calls first, then what events hold, and at the end what the console alone is told. */
function objectsPage(schemas: Schemas, [calls, consoles]: readonly ReadonlySet<string>[]): Page {
  const rank = (name: string) => (calls?.has(name) ? 0 : consoles?.has(name) ? 2 : 1)
  const entries = Object.entries(schemas).sort(([a], [b]) => rank(a) - rank(b))
  const body = html`<h1 id="objects">Objects</h1>
<p>What requests and answers of the <a href="reference.html">API</a> hold. A field that has nothing to say is left out; in requests, <code>null</code> is the same as absent.</p>
${entries.map(([name, schema]) => object(name, schema))}`
  return {
    title: 'Objects',
    headings: entries.map(([name]) => ({ depth: 2, text: name, id: name })),
    passages: entries.map(([name, schema]) => ({
      heading: name,
      id: name,
      text: `${Object.keys((schema.properties ?? {}) as object).join(' ')}\n${wordsOf(schema)}`,
    })),
    body,
  }
}

function consolePage(tags: readonly Tag[], schemas: Schemas): Page {
  const body = html`<h1 id="console-api">What the console calls</h1>
<p>The console uses the public API, signed in by its session’s cookie instead of a key, and these calls. They may change with any release:
programs use keys and the <a href="reference.html">API</a>. As OpenAPI, with the API’s own calls: <code>/console/openapi.json</code> of any server.</p>
${tags.map((tag) => tagSection(tag, schemas))}`
  return { title: 'Console calls', headings: headingsOf(tags), passages: passagesOf(tags), body }
}

function tagSection({ name, description, operations }: Tag, schemas: Schemas): Html {
  return html`<h2 id="${anchor(name)}">${name}</h2><p>${description}</p>${operations.map((operation) => section(operation, schemas))}`
}

function headingsOf(tags: readonly Tag[]): Heading[] {
  return tags.flatMap(({ name, operations }) => [
    { depth: 2, text: name, id: anchor(name) },
    ...operations
      .filter(({ doc }) => !String(doc.operationId).endsWith('BySlash'))
      .map(({ doc }) => ({ depth: 3, text: String(doc.summary), id: String(doc.operationId) })),
  ])
}

function passagesOf(tags: readonly Tag[]): Passage[] {
  return tags.flatMap(({ operations }) =>
    operations.map(({ method, path, doc }) => ({
      heading: String(doc.summary),
      id: String(doc.operationId),
      text: `${method} ${path}\n${doc.description}\n${((doc.parameters ?? []) as JsonObject[]).map(({ name }) => name).join(' ')}`,
    })),
  )
}

/** All that is said in a schema, however deep. */
function wordsOf(node: unknown): string {
  const found = JSON.stringify(node).matchAll(/"description":"((?:[^"\\]|\\.)*)"/g)
  return [...found].map(([, text]) => text).join(' ')
}

function operationsOf(document: JsonObject, tag: string): Operation[] {
  return Object.entries(document.paths as Record<string, Record<string, JsonObject>>).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, doc]) => (doc.tags as string[]).includes(tag))
      .map(([method, doc]) => ({ method: method.toUpperCase(), path, doc })),
  )
}

function section(operation: Operation, schemas: Schemas): Html {
  const { method, path, doc } = operation
  const id = String(doc.operationId)
  const parameters = (doc.parameters ?? []) as JsonObject[]
  const [body] = contentOf(doc.requestBody as JsonObject | undefined)
  const bodyName = body && schemaName(String(body.schema.$ref))
  const responses = doc.responses as Record<string, JsonObject>
  return html`<section class="operation" id="${id}">
<div>
<h3>${String(doc.summary)} <a class="anchor" href="#${id}" aria-label="Link to this section">#</a></h3>
<p class="route"><b class="${method}">${method}</b> <code>${path}</code></p>
${prose(String(doc.description))}
${table('Path', parameterRows(parameters, 'path'))}
${table('Query', parameterRows(parameters, 'query'))}
${table(
  'Headers',
  parameterRows(parameters, 'header').filter(({ name }) => name !== 'Api-Revision'),
)}
${bodyName === undefined ? '' : table('Body', fieldRows(schemas[bodyName] ?? {}))}
<h4>Answer</h4><p>${contentOf(responses['200']).map(
    ({ type, schema }, i) => html`${i > 0 ? ' or ' : ''}<code>200</code> ${answerType(schema)} as <code>${type}</code>`,
  )}</p>
<details class="errors"><summary>Errors: ${Object.keys(responses)
    .filter((status) => status !== '200')
    .join(', ')}</summary><dl class="fields">${Object.entries(responses)
    .filter(([status]) => status !== '200')
    .map(
      ([status, { description }]) =>
        html`<div><dt><code>${status}</code></dt><dd>${inline(String(description))}</dd></div>`,
    )}</dl></details>
</div>
${examples(operation)}
</section>`
}

/** None for what the console alone calls, signed in by its cookie. */
function examples(operation: Operation): Html {
  const { doc } = operation
  if ((doc.tags as string[]).includes(CONSOLE_TAG)) return html``
  const id = String(doc.operationId)
  const example = EXAMPLES.find((each) => each.id === id)
  return html`<div class="beside"><div class="tabs">${codeBlock(curl(operation), 'sh')}${
    example ? [codeBlock(example.ts, 'ts'), codeBlock(example.python, 'python')] : ''
  }</div>${id in samples ? sample(id) : ''}</div>`
}

function sample(id: string): Html {
  const answer = samples[id]
  const [type, text] =
    typeof answer === 'string'
      ? (['text/event-stream', codeBlock(answer, 'http')] as const)
      : (['application/json', codeBlock(writtenJson(answer, 56), 'json')] as const)
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

function answerType(schema: JsonObject): Html {
  if (schema.$ref === undefined && Object.keys((schema.properties ?? {}) as object).length === 0) {
    return schema.type === 'object' ? html`an empty object` : html`the content`
  }
  return typeOf(schema)
}

function events(): Html {
  return html`<h2 id="events">Events</h2>${prose(EVENTS_TEXT)}
<dl class="fields">${EVENTS.map(
    (event) =>
      html`<div><dt><code>${event.name}</code><span><code>${event.data}</code></span></dt><dd>${inline(event.when)}</dd></div>`,
  )}</dl>
${codeBlock(String(samples.createInteractionStream), 'http')}`
}

function limitsSection(limits: Limits): Html {
  const n = (value: number) => value.toLocaleString('en')
  const mib = (bytes: number) => `${n(Math.round(bytes / 1024 / 1024))} MiB`
  const span = ({ min, max, default: usual }: Range) => `${n(min)} to ${n(max)}, default ${n(usual)}`
  const rows: [string, string][] = [
    ['New interactions a minute, a project', n(limits.interactionsPerMinute)],
    ['Other calls a minute, a project', n(limits.callsPerMinute)],
    ['Running at once, a project', `${n(limits.runningPerProject)}, then ${n(limits.queuedPerProject)} wait, then 503`],
    ['policy.maxTurnDuration, seconds', span(limits.maxTurnDuration)],
    ['policy.maxOutputTokens', span(limits.maxOutputTokens)],
    ['policy.maxToolDuration, seconds of one tool call', span(limits.maxToolDuration)],
    ...Object.entries(limits.sandbox).map(([name, range]): [string, string] => [`policy.sandbox.${name}`, span(range)]),
    ['Request body', mib(limits.bodyBytes)],
    ['Inline files of a request', `${n(limits.files)} files, ${mib(limits.inlineFilesBytes)} in all`],
    ['A file by URL', mib(limits.fileBytes)],
    ['Output files of a run', mib(limits.outputFilesBytes)],
    [
      'Instruction · systemInstruction, characters',
      `${n(limits.instructionChars)} · ${n(limits.systemInstructionChars)}`,
    ],
    ['Tools · skills · MCP servers', `${n(limits.tools)} · ${n(limits.skills)} · ${n(limits.mcp)}`],
    ['A skill, as a zip and unpacked', `${mib(limits.skillBytes)}, ${n(limits.skillFiles)} files`],
    ['Labels', `${limits.labels}; name ${limits.labelKeyChars}, value ${limits.labelValueChars} characters`],
    ['JSON', `${limits.jsonDepth} levels deep, 20,000 values`],
    ['Kept after the end', `${n(limits.retentionDays)} days`],
  ]
  return html`<h2 id="limits">Limits</h2>
${prose(
  'As they are where the operator set no others: `GET /v1beta/server` tells a server’s own. A call over the rate is 429 and not counted: waiting `Retry-After` seconds is enough. A POST that creates nothing (a wrong field, a missing agent) counts as a call, not as a creation. What is left stands in `RateLimit` and `X-RateLimit-*` on every answer.',
)}
<div class="table" tabindex="0" role="group" aria-label="Limits"><table>${rows.map(([what, value]) => html`<tr><th scope="row">${what}</th><td>${value}</td></tr>`)}</table></div>`
}

function versioning(revision: string): Html {
  return html`<h2 id="versioning">Versioning</h2>
${prose(
  `The path carries \`v1beta\`; the header \`Api-Revision\` pins the behaviour to a dated revision. The latest here is \`${revision}\`. Without the header you get the latest one, whatever it is by then: send it always in production. The revision that was used comes back in \`Api-Revision\`. An unknown, malformed or retired one is 400 \`unsupported_api_revision\`, with \`supported\`.`,
)}`
}

function object(name: string, schema: JsonObject): Html {
  return html`<section id="${name}"><h2>${name} <a class="anchor" href="#${name}" aria-label="Link to this section">#</a></h2>${prose(String(schema.description ?? ''))}
${table('Fields', fieldRows(schema), 3)}
${schema.oneOf || schema.anyOf ? html`<p>One of ${typeOf(schema)}.</p>` : ''}</section>`
}

function anchor(name: string): string {
  return name.toLowerCase()
}
