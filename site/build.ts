/**
 * Builds the documentation as static files for any web server: `node site/build.ts [DIRECTORY]` (default site/dist, which the
 * server serves at /docs). A broken link or anchor fails the build.
 *
 * Why not VitePress or Starlight: both put inline scripts and styles into pages and set HTML from strings, which our CSP
 * (`script-src 'self'`, trusted types `'none'`) refuses; each brings Vite and hundreds of packages, where this needs four without
 * dependencies (marked, github-slugger, highlight.js, minisearch; 11 MB). Checked code blocks and generated reference would stay ours.
 */
import { createHash } from 'node:crypto'
import { cpSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname, extname, join, normalize, resolve } from 'node:path'
import { slug } from 'github-slugger'
import { describeApi } from '../src/http/openapi/describe-api.ts'
import { renderClientReference } from './client-reference.ts'
import { ROOT, readSections, type Source } from './contents.ts'
import { html } from './html.ts'
import { type Assets, type Menu, renderLayout } from './layout.ts'
import { type Page, type Passage, renderMarkdown } from './markdown.ts'
import { renderReference } from './reference.ts'

const OUTSIDE = /^(?:https?:|mailto:)/

/** Writes the site into `target`. Throws with a list of all broken links. */
export async function buildSite(target: string): Promise<void> {
  const sections = readSections()
  const sources = sections.flatMap(({ sources }) => sources)
  const copied = new Map<string, string>()
  const broken: string[] = []
  const { everything, api, limits } = await describeApi()
  const pages = new Map<string, Page>()
  const generated = new Map([...renderReference(everything, limits), ...renderClientReference()])
  for (const source of sources) {
    const address = (link: string) => {
      const found = addressOf(link, source, sources, copied)
      if (found === undefined) broken.push(`${source.file}: ${link}`)
      return found ?? link
    }
    const page = generated.get(source.name) ?? renderMarkdown(textOf(source), address)
    pages.set(source.name, page)
  }
  broken.push(...brokenAnchors(pages))
  if (broken.length > 0) throw new Error(`These links are broken:\n${broken.join('\n')}`)

  rmSync(target, { recursive: true, force: true })
  mkdirSync(join(target, 'assets'), { recursive: true })
  const assets = writeAssets(target, pages)
  const menus: Menu[] = sections.map(({ title, sources }) => ({
    title,
    entries: sources.map(({ name }) => ({ name, title: titleOf(name, pages) })),
  }))
  for (const [name, page] of pages) writeFileSync(join(target, `${name}.html`), renderLayout(name, page, menus, assets))
  writeFileSync(join(target, '404.html'), renderLayout('404', NOT_FOUND, menus, assets))
  writeFileSync(join(target, 'openapi.json'), JSON.stringify(api))
  for (const [from, to] of copied) {
    mkdirSync(dirname(join(target, to)), { recursive: true })
    cpSync(join(ROOT, from), join(target, to))
  }
}

/** The Markdown of a page. The page of the examples gets the text of each program that it links to. */
function textOf({ name, file }: Source): string {
  const text = readFileSync(join(ROOT, file), 'utf8')
  if (name !== 'examples') return text
  const programs: string[] = []
  const linked = text.replaceAll(/\]\(([\w/.-]+\.(ts|tsx|js|py))\)/g, (_, program, ending) => {
    const code = readFileSync(join(ROOT, dirname(file), program), 'utf8')
    programs.push(`## \`${program}\`\n\n\`\`\`${ending === 'py' ? 'python' : 'ts'}\n${code}\`\`\`\n\n`)
    return `](#${slug(program)})`
  })
  return linked.replace('## The data', `${programs.join('')}## The data`)
}

const NOT_FOUND: Page = {
  title: 'Not found',
  headings: [],
  passages: [],
  body: html`<h1>There is no such page</h1><p>Choose a page from the contents, or press <kbd>/</kbd> to search.</p>`,
}

function titleOf(name: string, pages: ReadonlyMap<string, Page>): string {
  if (name === 'index') return 'Overview'
  if (name === 'typescript') return 'TypeScript client'
  if (name === 'python') return 'Python client'
  return (pages.get(name) as Page).title
}

/** The address in the site of a file that a page links to: the file's page, or a copy of the file. Undefined if there is no such file. */
function addressOf(
  link: string,
  { file }: Source,
  sources: readonly Source[],
  copied: Map<string, string>,
): string | undefined {
  if (OUTSIDE.test(link) || link.startsWith('#')) return link
  const [path = '', fragment] = link.split('#')
  const to = normalize(join(dirname(file), path))
  if (to === 'README.md') return 'index.html'
  const page = sources.find((source) => source.file === to)
  if (page) return `${page.name}.html${fragment === undefined ? '' : `#${fragment}`}`
  if (!statSync(join(ROOT, to), { throwIfNoEntry: false })?.isFile()) return undefined
  const copy = extname(to) === '.png' ? `images/${basename(to)}` : `files/${to}`
  copied.set(to, copy)
  return copy
}

function brokenAnchors(pages: ReadonlyMap<string, Page>): string[] {
  const idsOf = ({ body }: Page) => new Set([...body.html.matchAll(/ id="([^"]+)"/g)].map((match) => match[1]))
  const ids = new Map([...pages].map(([name, page]) => [`${name}.html`, idsOf(page)]))
  return [...pages].flatMap(([name, { body }]) =>
    [...body.html.matchAll(/<a [^>]*?href="([^"]*)#([^"]+)"/g)]
      .filter(([, path = '', id]) => !OUTSIDE.test(path) && !ids.get(path || `${name}.html`)?.has(id))
      .map(([, path, id]) => `${name}: ${path}#${id}`),
  )
}

/** Writes scripts and styles. File names have a hash of the content, so browsers can cache them forever. */
function writeAssets(target: string, pages: ReadonlyMap<string, Page>): Assets {
  const write = (name: string, text: string | Buffer): string => {
    const hash = createHash('sha256').update(text).digest('hex').slice(0, 10)
    const path = `assets/${name.replace('.', `.${hash}.`)}`
    writeFileSync(join(target, path), text)
    return path
  }
  const here = (name: string) => readFileSync(join(import.meta.dirname, name), 'utf8')
  const shared = (name: string) => readFileSync(join(ROOT, 'console/public', name))
  const minisearch = readFileSync(
    createRequire(import.meta.url)
      .resolve('minisearch')
      .replace(/dist\/.*/, 'dist/es/index.js'),
    'utf8',
  )
  const engine = write('minisearch.js', minisearch.replace(/\n\/\/# sourceMappingURL.*/, ''))
  const index = write('passages.js', `export default ${JSON.stringify(passagesOf(pages))}\n`)
  const ranking = write('search-index.js', here('search-index.js'))
  const search = here('search.js')
    .replace("'minisearch'", `'./${basename(engine)}'`)
    .replace("'passages'", `'./${basename(index)}'`)
    .replace("'./search-index.js'", `'./${basename(ranking)}'`)
  const script = here('site.js').replace('./search.js', `./${basename(write('search.js', search))}`)
  return {
    style: write('style.css', here('style.css')),
    theme: write('theme.js', shared('theme.js')),
    icon: write('favicon.svg', shared('favicon.svg')),
    script: write('site.js', script),
  }
}

/** The passages of all pages, as the search shows them. */
export function passagesOf(pages: ReadonlyMap<string, Page>) {
  return [...pages].flatMap(([name, { passages }]) =>
    passages.map(({ heading, id, text, code = '', ...variant }) => ({
      id: `${name}.html#${id}`,
      page: titleOf(name, pages),
      heading,
      text,
      code,
      ...(CLIENT_GUIDES[name] && guideVariant(CLIENT_GUIDES[name], heading)),
      ...variant,
    })),
  )
}

/** The pages of the two clients have the same sections. */
const CLIENT_GUIDES: Readonly<Record<string, string>> = { typescript: 'TypeScript', python: 'Python' }

function guideVariant(language: string, heading: string): Pick<Passage, 'group' | 'language'> {
  return { group: `guide ${heading}`, language }
}

if (import.meta.main) await buildSite(resolve(process.argv[2] ?? join(import.meta.dirname, 'dist')))
