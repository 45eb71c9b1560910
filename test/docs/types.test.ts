/** Compiles every TypeScript snippet of the documentation against the client, with strict options. */
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { BEGINNINGS, EXAMPLES } from '../../site/examples.ts'
import { type Block, blocksOf, pages, ROOT } from './blocks.ts'

const run = promisify(execFile)

let home: string
beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), 'errand-types-'))
  mkdirSync(join(home, 'node_modules'))
  symlinkSync(join(ROOT, 'clients/typescript'), join(home, 'node_modules/errand-client'))
  symlinkSync(join(ROOT, 'node_modules/@types'), join(home, 'node_modules/@types'))
})
afterAll(() => rmSync(home, { recursive: true, force: true }))

/** All TypeScript programs by file name, each with its setup. */
function programs(): [string, string][] {
  const found: [string, string][] = EXAMPLES.map(({ id, ts }) => [
    `reference-${id}`,
    `${BEGINNINGS.ts}\nconst interactionId = 'int_0Wb1xYz3kJ9mQ2pR5sT7uV'\n${ts}\n`,
  ])
  for (const page of pages()) {
    let before = ''
    for (const [i, block] of blocksOf(page).entries()) {
      if (block.language !== 'ts') continue
      if (block.rule.kind === 'setup') before = block.text
      else if (isProgram(block)) found.push([`${page.replaceAll(/\W/g, '-')}-${i}`, `${before}\n${block.text}\n`])
    }
  }
  return found
}

const isProgram = ({ rule }: Block) => rule.kind === 'run' || rule.kind === 'file'

test('the TypeScript snippets compile', async () => {
  const found = programs()
  expect(found.length).toBeGreaterThan(EXAMPLES.length)
  for (const [name, text] of found) writeFileSync(join(home, `${name}.mts`), text)
  const options = '--noEmit --strict --noUncheckedIndexedAccess --target es2024 --module nodenext --types node'
  const tsc = [
    join(ROOT, 'node_modules/typescript/bin/tsc'),
    ...options.split(' '),
    ...found.map(([name]) => `${name}.mts`),
  ]
  const said = await run(process.execPath, tsc, { cwd: home }).then(
    () => '',
    ({ stdout }) => stdout,
  )
  expect(said).toBe('')
})
