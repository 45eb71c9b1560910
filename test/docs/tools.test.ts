/** docs/tools.md describes each tool, and each action of the browser. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { TOOL_NAMES } from '../../src/domain/agent.ts'
import { ACTIONS } from '../../src/tools/browser/actions.ts'
import { ROOT } from './blocks.ts'

const SECTIONS = new Map(
  readFileSync(join(ROOT, 'docs/tools.md'), 'utf8')
    .split(/^## /m)
    .map((text) => [text.slice(0, text.indexOf('\n')), text]),
)

test('has a section for each tool', () => {
  for (const name of TOOL_NAMES) expect([...SECTIONS.keys()]).toContain(name)
})

test('lists the actions of the browser', () => {
  for (const action of Object.keys(ACTIONS)) expect(SECTIONS.get('browser')).toContain(`\`${action}\``)
})
