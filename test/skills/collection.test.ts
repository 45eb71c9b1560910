/**
 * A collection of skills loads unchanged, from the operator's folder and as zips by the command line. A run finds the same
 * bytes and execute bits in its sandbox. The test writes a collection in common layouts. `SKILLS_COLLECTION=DIR` tests
 * another one, such as a clone of github.com/anthropics/skills:
 *
 *     SKILLS_COLLECTION=/tmp/skills npx vitest run test/skills/collection.test.ts
 */
import { createHash } from 'node:crypto'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join, relative } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type FakeProvider, openFakeProvider } from '../fake-provider.ts'
import { type Server, startServer } from '../support/server.ts'
import { bash, toolRunner } from '../support/tool-run.ts'
import { skillText } from '../support/zip.ts'

const given = process.env.SKILLS_COLLECTION
let place: string
let collection: string
let provider: FakeProvider
let server: Server
beforeAll(async () => {
  place = mkdtempSync(join(tmpdir(), 'errand-test-'))
  collection = given ?? writeCollection(join(place, 'collection'))
  provider = await openFakeProvider()
  server = await startServer({ provider, config: { skillsDir: collection } })
})
afterAll(async () => {
  await server.stop()
  await provider.close()
  rmSync(place, { recursive: true })
})

/** Skills in common layouts. */
function writeCollection(root: string): string {
  const files: Record<string, string | Buffer> = {
    'README.md': '# No skill\n',
    'template/SKILL.md':
      '---\nname: template-skill\ndescription: Replace with a description of the skill.\n---\n\n# Insert here\n',
    'skills/plain/SKILL.md': skillText('plain'),
    'skills/plain/LICENSE.txt': 'All rights reserved.\n',
    'skills/office/SKILL.md': `---\nname: office\ndescription: "Use it: 'docs', \\".docx\\" files, and more."\nlicense: Proprietary. LICENSE.txt has complete terms\n---\n\nRun scripts/pack.py.\n`,
    'skills/office/scripts/pack.py': '#!/usr/bin/env python3\nprint("packed")\n',
    'skills/office/scripts/office/validators/__init__.py': '',
    'skills/office/schemas/ecma/4th edition/opc-contentTypes.xsd': '<x/>'.repeat(10_000),
    'skills/fonts/SKILL.md': skillText('fonts'),
    'skills/fonts/canvas-fonts/Größe – ünïcode.ttf': Buffer.alloc(700_000, 7),
    'skills/long/SKILL.md': `---\nname: long\ndescription: |-\n  ${'Many words. '.repeat(95)}\n  TRIGGER - whenever: it is asked for.\n---\n${'A line of instructions.\n'.repeat(3000)}`,
    'skills/loose/SKILL.md':
      '---\nname: loose\ndescription: Use this skill when: the user asks\nversion: 1.0\nallowed-tools: Read, Bash(git add:*)\nmetadata:\n  n: 1\n---\nText\n',
    'skills/windows/SKILL.md': '\ufeff---\r\nname: windows\r\ndescription: Written elsewhere.\r\n---\r\n\r\nText\r\n',
  }
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
  chmodSync(join(root, 'skills/office/scripts/pack.py'), 0o755)
  return root
}

/** Folders with a SKILL.md. */
function skillFolders(): string[] {
  return readdirSync(collection, { recursive: true, encoding: 'utf8' })
    .filter((path) => basename(path) === 'SKILL.md' && !path.includes('.git/'))
    .map((path) => dirname(join(collection, path)))
    .sort()
}

function nameOf(folder: string): string {
  return /^name: *"?([a-z0-9-]+)/m.exec(readFileSync(join(folder, 'SKILL.md'), 'utf8'))![1]!
}

/** `sha256  path`, with a mark if executable: the format of `digests` in the sandbox. */
function contentOf(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => statSync(join(folder, path)).isFile())
    .map((path) => {
      const file = join(folder, path)
      const mark = (statSync(file).mode & 0o111) === 0 ? '-' : 'x'
      return `${mark} ${createHash('sha256').update(readFileSync(file)).digest('hex')} ${relative(folder, file)}`
    })
    .sort()
}

const LOOK = `cd /skills && for name in *; do echo "== $name"; ( cd "$name" && find . -type f | while IFS= read -r f; do
[ -x "$f" ] && mark=x || mark=-; echo "$mark $(sha256sum < "$f" | cut -c1-64) \${f#./}"; done | LC_ALL=C sort ); done > /workspace/outputs/list`

test('offers every skill from the start, to every project', async () => {
  const { body } = await server.get('/v1beta/skills?pageSize=100')
  const names = skillFolders().map(nameOf).sort()
  expect(names.length).toBeGreaterThan(5)
  expect(body.skills.map(({ name }: { name: string }) => name).sort()).toEqual(names)
  for (const { source, version } of body.skills) expect([source, version]).toEqual(['server', 1])
  expect(server.output()).not.toContain("can't be used")
})

test('errand skills check and errand skills add accept each skill unchanged', async () => {
  const folders = skillFolders()
  const checked = await server.errand(['skills', 'check', ...folders])
  expect([checked.code, checked.stdout.match(/^error.*/gm)]).toEqual([0, null])
  const added = await server.errand(['skills', 'add', ...folders, '--server', server.url, '--key', server.key])
  expect(added.stdout.trim().split('\n')).toEqual(folders.map((folder) => `${nameOf(folder)}@1`))
  const { body } = await server.get('/v1beta/skills?pageSize=100')
  for (const { source } of body.skills) expect(source).toBe('project')
})

test('a run has all skills, with the same bytes, names and execute bits', async () => {
  const folders = skillFolders()
  for (let i = 0; i < folders.length; i += 20) {
    const some = folders.slice(i, i + 20)
    const run = toolRunner(
      () => server,
      () => provider,
    )
    const first = { name: 'skill', args: { name: nameOf(some[0]!) } }
    const { body, outputs } = await run([bash(`mkdir -p outputs; ${LOOK}`), first], { skills: some.map(nameOf) })
    expect(body.status).toBe('completed')
    expect(outputs[1]).toContain(`/skills/${nameOf(some[0]!)}`)
    const list = await (await fetch(body.files[0].url)).text()
    const expected = some
      .sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1))
      .flatMap((folder) => [`== ${nameOf(folder)}`, ...contentOf(folder)])
    expect(list.trim().split('\n').sort()).toEqual(expected.sort())
  }
})
