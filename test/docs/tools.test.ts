/** docs/tools.md tells each tool that callers can name, and all that the browser can be asked for. */
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

test('each tool has a section', () => {
  for (const name of TOOL_NAMES) expect([...SECTIONS.keys()]).toContain(name)
})

test('the browser’s has its actions', () => {
  for (const action of Object.keys(ACTIONS)) expect(SECTIONS.get('browser')).toContain(`\`${action}\``)
})
