/** Checks that files and directories named in the developer documents exist. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ROOT } from './blocks.ts'

const TOP = new Set(readdirSync(ROOT))

test.each(['ARCHITECTURE.md', 'docs/development.md', 'docs/guarantees.md', 'docs/event-loop.md'])(
  '%s names existing paths',
  (page) => {
    const text = readFileSync(join(ROOT, page), 'utf8')
    const paths = [...text.matchAll(/`([\w.-]+\/[\w./-]+)`/g)].map(([, path]) => path!)
    const own = paths.filter((path) => TOP.has(path.split('/')[0]!) || path.endsWith('.ts'))
    expect(own.length).toBeGreaterThan(0)
    for (const path of own) expect(existsSync(join(ROOT, path)) || existsSync(join(ROOT, 'src', path)), path).toBe(true)
  },
)
