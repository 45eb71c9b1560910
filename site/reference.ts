/** The API reference, from the OpenAPI document: an overview, a page for each resource, the objects, the console's calls. */
import type { Limits, Range } from '../src/domain/limits.ts'
import { EVENTS_TEXT, INTRODUCTION } from '../src/http/openapi/api-texts.ts'
import { CONSOLE_TAG, type JsonObject, schemasIn } from '../src/http/openapi/openapi.ts'
import { EVENTS } from '../src/http/wire/2026-05-20/events.ts'
import { BEGINNINGS, type Operation } from './examples.ts'
import { fieldRows, table, typeOf } from './fields.ts'
import { type Html, html, inline, prose } from './html.ts'
import { codeBlock, type Heading, type Page, type Passage } from './markdown.ts'
import { renderOperation, SAMPLES, type Schemas } from './operation.ts'

interface Tag {
  readonly name: string
  readonly description: string
  readonly operations: readonly Operation[]
}

/** The generated pages by name. `document` describes everything that a server serves. */
export function renderReference(document: JsonObject, limits: Limits): ReadonlyMap<string, Page> {
  const tags = (document.tags as { name: string; description: string }[]).map((tag) => ({
    ...tag,
    operations: operationsOf(document, tag.name),
  }))
  const schemas = (document.components as JsonObject).schemas as Schemas
  const resources = tags.filter(({ name }) => name !== CONSOLE_TAG)
  const console = tags.filter(({ name }) => name === CONSOLE_TAG)
  return new Map([
    ['reference', overviewPage(document, resources, limits)],
    ...resources.map((tag) => [pageName(tag), resourcePage(tag, schemas)] as const),
    ['objects', objectsPage(schemas, [namedBy(resources, schemas), namedBy(console, schemas)])],
    ['console-api', consolePage(console, schemas)],
  ])
}

function pageName({ name }: Tag): string {
  return `reference-${anchor(name)}`
}

function overviewPage(document: JsonObject, tags: readonly Tag[], limits: Limits): Page {
  const body = html`<h1 id="api-reference">API reference</h1>
${prose(INTRODUCTION)}
<p>For programs: <a href="openapi.json">openapi.json</a> (OpenAPI ${String(document.openapi)}), at <code>/openapi.json</code> of every server. See also
<a href="errors.html">Errors</a> and <a href="objects.html">Objects</a>.</p>
<p>The examples in TypeScript and Python use the <a href="clients.html">clients</a> and begin with:</p>
<div class="tabs">${Object.entries(BEGINNINGS).map(([language, text]) => codeBlock(text, language))}</div>
${tags.map(operationList)}
${events()}
${limitsSection(limits)}
${versioning(String((document.info as JsonObject).version))}`
  const headings = [...tags.map(({ name }) => name), 'Events', 'Limits', 'Versioning']
  const eventTexts = EVENTS.map(({ name, when }) => `${name} ${when}`).join('\n')
  return {
    title: 'API reference',
    headings: headings.map((text) => ({ depth: 2, text, id: anchor(text) })),
    passages: [
      { heading: 'API reference', id: 'api-reference', text: INTRODUCTION },
      { heading: 'Events', id: 'events', text: `${EVENTS_TEXT}\n${eventTexts}` },
      { heading: 'Limits', id: 'limits', text: limitRows(limits).flat().join(' ') },
      { heading: 'Versioning', id: 'versioning', text: 'Api-Revision' },
    ],
    body,
  }
}

/** A table of a resource's operations. Each row has the operation's id, so links to it from before pages were divided work. */
function operationList(tag: Tag): Html {
  return html`<h2 id="${anchor(tag.name)}"><a href="${pageName(tag)}.html">${tag.name}</a></h2><p>${tag.description}</p>
<div class="table" tabindex="0" role="group" aria-label="${tag.name}"><table>${tag.operations.map(
    ({ method, path, doc }) =>
      html`<tr id="${String(doc.operationId)}"><th scope="row"><a href="${pageName(tag)}.html#${String(doc.operationId)}">${String(doc.summary)}</a></th><td class="route"><b class="${method}">${method}</b> <code>${path}</code></td></tr>`,
  )}</table></div>`
}

function resourcePage(tag: Tag, schemas: Schemas): Page {
  const id = anchor(tag.name)
  const body = html`<h1 id="${id}">${tag.name} API</h1><p>${tag.description} Headers, limits, events and versions: <a href="reference.html">API reference</a>.</p>
${tag.operations.map((operation) => renderOperation(operation, schemas))}`
  return {
    title: `${tag.name} API`,
    headings: headingsOf([tag]),
    passages: [{ heading: `${tag.name} API`, id, text: tag.description }, ...passagesOf([tag])],
    body,
  }
}

/** The objects that these calls take or return, and the objects inside them. */
function namedBy(tags: readonly Tag[], schemas: Schemas): ReadonlySet<string> {
  return schemasIn(
    tags.map(({ operations }) => operations.map(({ doc }) => doc)),
    schemas,
  )
}

/** Objects of the public calls first, then those of events, then those of the console's calls. */
function objectsPage(schemas: Schemas, [calls, console]: readonly ReadonlySet<string>[]): Page {
  const rank = (name: string) => (calls?.has(name) ? 0 : console?.has(name) ? 2 : 1)
  const entries = Object.entries(schemas).sort(([a], [b]) => rank(a) - rank(b))
  const body = html`<h1 id="objects">Objects</h1>
<p>The objects in requests and responses of the <a href="reference.html">API</a>. A response leaves out a field that has no value; in a request, <code>null</code> is the same as absent.</p>
${entries.map(([name, schema]) => object(name, schema))}`
  return {
    title: 'Objects',
    headings: entries.map(([name]) => ({ depth: 2, text: name, id: name })),
    passages: entries.map(([name, schema]) => ({
      heading: name,
      id: name,
      text: `${Object.keys((schema.properties ?? {}) as object).join(' ')}\n${descriptionsIn(schema)}`,
    })),
    body,
  }
}

function consolePage(tags: readonly Tag[], schemas: Schemas): Page {
  const operations = tags.flatMap(({ operations }) => operations)
  const body = html`<h1 id="console-api">Console calls</h1>
<p>The web console uses the public API with its session cookie instead of a key, and the calls on this page. These calls may change with any release:
programs use keys and the <a href="reference.html">API</a>. The OpenAPI document of both is <code>/console/openapi.json</code> of every server.</p>
${operations.map((operation) => renderOperation(operation, schemas))}`
  return { title: 'Console calls', headings: headingsOf(tags), passages: passagesOf(tags), body }
}

function headingsOf(tags: readonly Tag[]): Heading[] {
  return tags.flatMap(({ operations }) =>
    operations
      .filter(({ doc }) => !String(doc.operationId).endsWith('BySlash'))
      .map(({ doc }) => ({ depth: 2, text: String(doc.summary), id: String(doc.operationId) })),
  )
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

/** All descriptions in a schema, at any depth. */
function descriptionsIn(node: unknown): string {
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

export function eventList(): Html {
  return html`<dl class="fields">${EVENTS.map(
    (event) =>
      html`<div><dt><code>${event.name}</code><span><code>${event.data}</code></span></dt><dd>${inline(event.when)}</dd></div>`,
  )}</dl>`
}

function events(): Html {
  return html`<h2 id="events">Events</h2>${prose(EVENTS_TEXT)}
${eventList()}
${codeBlock(String(SAMPLES.createInteractionStream), 'http')}`
}

function limitRows(limits: Limits): [string, string][] {
  const n = (value: number) => value.toLocaleString('en')
  const mib = (bytes: number) => `${n(Math.round(bytes / 1024 / 1024))} MiB`
  const span = ({ min, max, default: usual }: Range) => `${n(min)} to ${n(max)}, default ${n(usual)}`
  return [
    ['New interactions per minute and project', n(limits.interactionsPerMinute)],
    ['Other calls per minute and project', n(limits.callsPerMinute)],
    [
      'Running at once per project',
      `${n(limits.runningPerProject)}; ${n(limits.queuedPerProject)} more are queued, then 503`,
    ],
    ['policy.maxTurnDuration, seconds', span(limits.maxTurnDuration)],
    ['policy.maxOutputTokens', span(limits.maxOutputTokens)],
    ['policy.maxToolDuration, seconds per tool call', span(limits.maxToolDuration)],
    ...Object.entries(limits.sandbox).map(([name, range]): [string, string] => [`policy.sandbox.${name}`, span(range)]),
    ['Request body', mib(limits.bodyBytes)],
    ['Inline files of a request', `${n(limits.files)} files, ${mib(limits.inlineFilesBytes)} in total`],
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
    ['Retention after the end', `${n(limits.retentionDays)} days`],
  ]
}

function limitsSection(limits: Limits): Html {
  return html`<h2 id="limits">Limits</h2>
${prose(
  'These are the defaults; `GET /v1beta/server` returns the limits of a server. A call over the rate limit gets 429 and is not counted: wait `Retry-After` seconds, then retry. A POST that creates nothing (a wrong field, a missing agent) counts as a call, not as a new interaction. Every response reports the rest of the quota in `RateLimit` and `X-RateLimit-*`.',
)}
<div class="table" tabindex="0" role="group" aria-label="Limits"><table>${limitRows(limits).map(([what, value]) => html`<tr><th scope="row">${what}</th><td>${value}</td></tr>`)}</table></div>`
}

function versioning(revision: string): Html {
  return html`<h2 id="versioning">Versioning</h2>
${prose(
  `The path has the version \`v1beta\`; the header \`Api-Revision\` pins the behavior to a dated revision. The latest one is \`${revision}\`. Without the header a request gets the latest revision, which changes with upgrades: send the header always in production. The response returns the revision that was used in \`Api-Revision\`. An unknown, malformed or retired revision is 400 \`unsupported_api_revision\`, with the list \`supported\`.`,
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
