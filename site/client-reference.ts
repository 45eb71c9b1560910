/** The client reference: a page for each client, with the signature and the description of every method. */
import { DESCRIPTIONS } from './client-descriptions.ts'
import { type Group, type Method, pythonMethods, typescriptMethods } from './client-methods.ts'
import { type Html, html, inline } from './html.ts'
import { codeBlock, type Page } from './markdown.ts'
import { eventList } from './reference.ts'

/** The generated pages, by name. */
export function renderClientReference(): ReadonlyMap<string, Page> {
  return new Map([
    ['client-typescript', clientPage('TypeScript', 'ts', typescriptMethods())],
    ['client-python', clientPage('Python', 'python', pythonMethods())],
  ])
}

function clientPage(language: string, code: string, groups: readonly Group[]): Page {
  const title = `${language} reference`
  const filled = groups.filter(({ methods }) => methods.length > 0)
  const body = html`<h1 id="${idOf(title)}">${title}</h1>
<p>Every method of the ${language} client, generated from its source. Options, errors and retries: <a href="clients.html">Clients</a>. Fields of
requests and responses: <a href="objects.html">Objects</a>.${
    code === 'python'
      ? html` <code>AsyncErrand</code> has the same methods for asyncio. A parameter with <code>…</code> is left out of the request unless you pass it.`
      : ''
  }</p>
${filled.map(
  ({ title, methods }) =>
    html`<h2 id="${idOf(title)}">${title}</h2>${methods.map((method) => methodSection(method, code))}`,
)}
<h2 id="events">Events</h2><p>Each event has <code>id</code>, <code>event</code> (the name) and <code>data</code>:</p>${eventList()}`
  return {
    title,
    headings: [...filled.map(({ title }) => title), 'Events'].map((text) => ({ depth: 2, text, id: idOf(text) })),
    passages: filled.flatMap(({ methods }) =>
      methods.map(({ key, call, signature }) => ({
        heading: call,
        id: key,
        text: `${DESCRIPTIONS[key]?.text ?? ''} ${DESCRIPTIONS[key]?.errors ?? ''}`.replaceAll('`', ''),
        code: signature,
        group: `method ${key}`,
        language,
      })),
    ),
    body,
  }
}

function methodSection({ key, call, signature }: Method, code: string): Html {
  const description = DESCRIPTIONS[key]
  if (!description) throw new Error(`${key} has no description in site/client-descriptions.ts.`)
  return html`<h3 id="${key}"><code>${call}</code> <a class="anchor" href="#${key}" aria-label="Link to this section">#</a></h3>
<p>${inline(description.text)}</p>
${codeBlock(signature, code)}
${description.errors ? html`<p><strong>Throws</strong> ${inline(description.errors)}</p>` : ''}`
}

function idOf(title: string): string {
  return title.toLowerCase().replaceAll(' ', '-')
}
