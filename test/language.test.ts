/**
 * Lints the English of comments, documents and strings (messages, descriptions, test names, interface texts) against the
 * rules in CONTRIBUTING.md ("How we write"). It finds phrases that hide an ordinary concept and doc comments that do not
 * begin with what the thing is. It cannot judge whether a sentence is clear; a reader does that.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseSync } from 'oxc-parser'
import { describe, expect, test } from 'vitest'

const ROOT = resolve(import.meta.dirname, '..')

/** Paths that are not linted: generated, third-party, or history. */
const EXCLUDED = [
  /(^|\/)(generated|api)\//,
  /^clients\/python\/src\/errand\/(_paths|models)/,
  /^CHANGELOG\.md$/,
  /^LICENSE$/,
  /package-lock\.json$/,
  /^docs\/(proof|benchmarks)\.md$/,
  /^test\/language\.test\.ts$/,
]

/** A phrase, and what to write instead. */
const BANNED: readonly (readonly [RegExp, string])[] = [
  [
    /\b(told|tells)\b(?! apart)|\btell (of|about|it|them|who|what|how|by|in|to|a)\b/i,
    'reported, sent, logged, shown, returned',
  ],
  [
    /\bstands? (in|there|at|on|as|for itself|beside|behind|outside|until|where)\b/i,
    'is in, is stored in, is listed in',
  ],
  [/\b(is|are|was|were|be|been) said\b/i, 'sent, written, printed, reported'],
  [/\bhangs? on\b/i, 'depends on'],
  [/\bwhoever\b/i, 'name the actor: a caller, a subscriber, anyone who'],
  [/\bto be had\b|\bcould not be had\b/i, 'available; could not be fetched'],
  [/\b(gives?|gave) way\b/i, 'saturates, fails'],
  [/\b(taken|takes?|took) up again\b/i, 'resumed'],
  [/\bcarr(y|ies) over\b/i, 'is copied to'],
  [/\bRejects never\b|\bThrows never\b/i, 'Never rejects, Never throws'],
  [/\bgoes for\b/i, 'also applies to'],
  [/\bsome chance in it\b/i, 'with jitter'],
  [/\b(anew|beforehand|thereof|therein|whereupon|herein|hitherto)\b/i, 'again, first, of it: modern words'],
  [
    /\b(colour|behaviour|favour|honour|neighbour|organis|recognis|serialis|normalis|summaris|authoris|initialis|optimis)/i,
    'American spelling',
  ],
  [/(?<![\w/-])(spec|contract|design|style|speed|agent|people|doors)\.md\b/, 'a page of docs/'],
]

/** First words with which a doc comment does not say what the thing is or does. */
const BARE_START = /^(What|Of|Where|That|Whoever|Whether it|As|So|How|Who|Which|Told|Here)\b/

interface Text {
  readonly line: number
  readonly text: string
  readonly doc: boolean
}

/** The comments of a TypeScript or JavaScript source, one entry a line; `doc` marks the first line of a doc comment. */
function commentsOf(source: string): Text[] {
  let open = false
  return source.split('\n').flatMap((text, i) => {
    const trimmed = text.trim()
    const begins = trimmed.startsWith('/**')
    const first = begins ? trimmed.slice(3).replace(/\*\/$/, '').trim() : ''
    const wasOpen = open
    if (begins) open = !trimmed.includes('*/')
    else if (open && trimmed.includes('*/')) open = false
    if (begins) return [{ line: i + 1, text: first, doc: true }]
    if (wasOpen) {
      const body = trimmed.replace(/^\*\/?\s?/, '').replace(/\*\/$/, '')
      const follows = source.split('\n')[i - 1]!.trim() === '/**'
      return [{ line: i + 1, text: body, doc: follows }]
    }
    const comment = /(?:^|\s)\/\/ (.*)$/.exec(text)
    return comment ? [{ line: i + 1, text: comment[1]!, doc: false }] : []
  })
}

/** The prose of a Markdown page: without code, links' addresses and quoted program output. */
function proseOf(page: string): Text[] {
  let fenced = false
  return page.split('\n').flatMap((text, i) => {
    if (/^\s*(```|~~~)/.test(text)) fenced = !fenced
    else if (!fenced)
      return [{ line: i + 1, text: text.replaceAll(/`[^`]*`/g, '').replaceAll(/\]\([^)]*\)/g, ']'), doc: false }]
    return []
  })
}

/** `#` comments of Python and shell sources. */
function hashComments(source: string): Text[] {
  return source.split('\n').flatMap((text, i) => {
    const comment = /(?:^|\s)# (.*)$/.exec(text)
    return comment ? [{ line: i + 1, text: comment[1]!, doc: false }] : []
  })
}

type Node = Readonly<Record<string, unknown>> & { readonly type?: string; readonly start: number }

/** Strings of a TypeScript or JavaScript source that have several words: messages, descriptions, test names, tables of tests. */
function stringsOf(path: string, source: string): Text[] {
  const found: Text[] = []
  const add = ({ start }: Node, text: unknown) => {
    if (typeof text !== 'string' || !/\w \w/.test(text)) return
    const first = source.slice(0, start).split('\n').length
    found.push(...text.split('\n').map((each, i) => ({ line: first + i, text: each, doc: false })))
  }
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return
    const node = value as Node
    if (node.type === 'Literal' || node.type === 'JSXText') add(node, node.value)
    else if (node.type === 'TemplateElement') add(node, (node.value as { cooked?: string }).cooked)
    else for (const each of Object.values(value)) visit(each)
  }
  visit(parseSync(path, source).program.body)
  return found
}

function textsOf(path: string, source: string): Text[] {
  if (/\.(ts|tsx|js|mjs|mts)$/.test(path)) return [...commentsOf(source), ...stringsOf(path, source)]
  if (path.endsWith('.md')) return proseOf(source)
  if (path.endsWith('.py') || /^(script|bench)\/[\w-]+$/.test(path)) return hashComments(source)
  return []
}

/** Violations as `path:line: text (what to write)`. */
function lint(path: string, source: string): string[] {
  return textsOf(path, source).flatMap(({ line, text, doc }) => {
    const found = BANNED.filter(([phrase]) => phrase.test(text)).map(([, instead]) => instead)
    if (doc && BARE_START.test(text)) found.push('begin with what the thing is or does')
    return found.map((instead) => `${path}:${line}: ${text.trim()}  →  ${instead}`)
  })
}

function sources(): string[] {
  const listed = execFileSync('git', ['ls-files', '-co', '--exclude-standard'], { cwd: ROOT, encoding: 'utf8' })
  return listed.split('\n').filter((path) => path !== '' && !EXCLUDED.some((excluded) => excluded.test(path)))
}

describe('the language lint', () => {
  test('finds nothing in the repository', () => {
    const only = process.env.LANGUAGE_PATHS?.split(',')
    const paths = sources().filter((path) => !only || only.some((each) => path.startsWith(each)))
    const found = paths.flatMap((path) => {
      try {
        return lint(path, readFileSync(join(ROOT, path), 'utf8'))
      } catch (error) {
        // Deleted in the working tree, or a directory of links.
        if (['ENOENT', 'EISDIR'].includes((error as NodeJS.ErrnoException).code!)) return []
        throw error
      }
    })
    expect(found.join('\n')).toBe('')
  })

  test.each([
    ['a.ts', '/** What the model is told. */', 2],
    ['a.ts', '/**\n * Of the run, its end.\n */', 1],
    ['a.ts', '// Each caller is told the limit.', 1],
    ['a.ts', "test('it stands in the log', () => {})", 1],
    ['a.ts', '/** Maximum size of a fragment, in bytes. */\nconst tells = 1', 0],
    ['a.md', 'Whoever waits is answered.', 1],
    ['a.md', '```\nwhoever\n```\nSee [spec](../spec.md).', 0],
    ['a.py', 'x = 1  # begun anew', 1],
    ['a.ts', "const text = 'whoever waits'", 1],
    ['a.tsx', 'const page = <p>Ask whoever runs it.</p>', 1],
    ['a.ts', 'test.each([`it hangs on the wall`])', 1],
  ])('%s: %j has %i findings', (path, source, findings) => {
    expect(lint(path, source)).toHaveLength(findings)
  })
})
