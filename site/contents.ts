/** What the site is made of: its sections in order, and where each page's text stands in the checkout. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'

export const ROOT = join(import.meta.dirname, '..')

export interface Source {
  /** The page's address, without `.html`. */
  readonly name: string
  /** Its Markdown, from the root of the checkout. What is made from the OpenAPI document has a word to readers of the checkout there. */
  readonly file: string
}

export interface Section {
  readonly title: string
  readonly sources: readonly Source[]
}

const inDocs = (name: string): Source => ({ name, file: `docs/${name}.md` })

const SECTIONS: readonly Section[] = [
  {
    title: 'Start',
    sources: [
      { name: 'index', file: 'docs/README.md' },
      ...['start', 'concepts', 'interactions'].map(inDocs),
      { name: 'examples', file: 'examples/README.md' },
    ],
  },
  {
    title: 'What a run can use',
    sources: ['models', 'tools', 'skills', 'mcp', 'network', 'webhooks'].map(inDocs),
  },
  {
    title: 'Reference',
    sources: [
      inDocs('reference'),
      { name: 'objects', file: 'docs/reference.md' },
      inDocs('errors'),
      { name: 'typescript', file: 'clients/typescript/README.md' },
      { name: 'python', file: 'clients/python/README.md' },
      inDocs('configuration'),
      { name: 'console-api', file: 'docs/reference.md' },
    ],
  },
  {
    title: 'Operating',
    sources: [
      'install',
      'operating',
      'accounts',
      'usage',
      'postgres',
      'scaling',
      'proof',
      'event-loop',
      'metrics',
      'traces',
    ].map(inDocs),
  },
  {
    title: 'Security',
    sources: [{ name: 'security', file: 'SECURITY.md' }, inDocs('sandbox')],
  },
  {
    title: 'Beside others',
    sources: ['comparison', 'benchmarks', 'migrating'].map(inDocs),
  },
]

/** A page of docs/ that no section names stands in one of its own at the end, so that none is ever missing. */
export function readSections(): readonly Section[] {
  const named = new Set(SECTIONS.flatMap(({ sources }) => sources.map(({ file }) => file)))
  const rest = readdirSync(join(ROOT, 'docs'))
    .filter((file) => file.endsWith('.md') && !named.has(`docs/${file}`))
    .map((file) => inDocs(file.slice(0, -'.md'.length)))
  const more = { title: 'More', sources: [...rest, { name: 'changelog', file: 'CHANGELOG.md' }] }
  return [...SECTIONS, more]
}
