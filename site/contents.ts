/** The site's table of contents: its sections in order, and the source file of each page. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'

export const ROOT = join(import.meta.dirname, '..')

export interface Source {
  /** Address of the page, without `.html`. */
  readonly name: string
  /** Path from the root of the checkout. A generated page names the file that readers of the checkout see instead. */
  readonly file: string
}

export interface Section {
  readonly title: string
  readonly sources: readonly Source[]
}

const inDocs = (name: string): Source => ({ name, file: `docs/${name}.md` })
const generated = (name: string): Source => ({ name, file: 'docs/reference.md' })
const generatedForClient = (name: string): Source => ({ name, file: 'docs/clients.md' })

const SECTIONS: readonly Section[] = [
  {
    title: 'Get started',
    sources: [
      { name: 'index', file: 'docs/README.md' },
      ...['start', 'concepts', 'interactions', 'cookbook'].map(inDocs),
      { name: 'examples', file: 'examples/README.md' },
    ],
  },
  {
    title: 'What a run can use',
    sources: ['models', 'tools', 'skills', 'mcp', 'network', 'webhooks'].map(inDocs),
  },
  {
    title: 'API',
    sources: [
      inDocs('reference'),
      ...['interactions', 'agents', 'credentials', 'skills', 'files', 'server'].map((tag) =>
        generated(`reference-${tag}`),
      ),
      generated('objects'),
      ...['errors', 'guarantees'].map(inDocs),
      generated('console-api'),
    ],
  },
  {
    title: 'Clients',
    sources: [
      inDocs('clients'),
      { name: 'typescript', file: 'clients/typescript/README.md' },
      generatedForClient('client-typescript'),
      { name: 'python', file: 'clients/python/README.md' },
      generatedForClient('client-python'),
    ],
  },
  {
    title: 'Operate',
    sources: [
      'install',
      'production',
      'configuration',
      'operating',
      'troubleshooting',
      'accounts',
      'usage',
      'metrics',
      'traces',
      'postgres',
      'scaling',
    ].map(inDocs),
  },
  {
    title: 'Security',
    sources: [{ name: 'security', file: 'SECURITY.md' }, inDocs('sandbox')],
  },
  {
    title: 'Compare',
    sources: ['comparison', 'migrating', 'benchmarks'].map(inDocs),
  },
  {
    title: 'Contribute',
    sources: ['development', 'event-loop', 'proof'].map(inDocs),
  },
]

/** The sections of the site. Pages of docs/ that no section names are added to a last section, so none is missing. */
export function readSections(): readonly Section[] {
  const named = new Set(SECTIONS.flatMap(({ sources }) => sources.map(({ file }) => file)))
  const rest = readdirSync(join(ROOT, 'docs'))
    .filter((file) => file.endsWith('.md') && !named.has(`docs/${file}`))
    .map((file) => inDocs(file.slice(0, -'.md'.length)))
  const more = { title: 'More', sources: [...rest, { name: 'changelog', file: 'CHANGELOG.md' }] }
  return [...SECTIONS, more]
}
