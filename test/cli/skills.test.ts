/** Runs `errand skills` on folders and zips: it prints a table, or all problems. */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Server, startServer } from '../support/server.ts'
import { skillText, zip } from '../support/zip.ts'

let place: string
let server: Server
beforeAll(async () => {
  place = mkdtempSync(join(tmpdir(), 'errand-test-'))
  server = await startServer()
})
afterAll(async () => {
  await server.stop()
  rmSync(place, { recursive: true })
})

function folder(name: string, files: Readonly<Record<string, string>>): string {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(place, name, path)), { recursive: true })
    writeFileSync(join(place, name, path), text)
  }
  return join(place, name)
}

const there = () => ['--server', server.url, '--key', server.key]

test('a folder and a zip are added, listed and removed, on a server', async () => {
  const good = folder('good', {
    'SKILL.md': skillText('good'),
    'scripts/run.sh': '#!/bin/sh\n',
    'references/deep/er/a.md': 'a',
    '.DS_Store': 'litter',
  })
  chmodSync(join(good, 'scripts/run.sh'), 0o755)
  const file = join(place, 'zipped.zip')
  writeFileSync(file, zip([{ name: 'SKILL.md', data: skillText('zipped') }]))
  const added = await server.errand(['skills', 'add', good, file, ...there()])
  expect(added.stderr).toBe('')
  expect(added.stdout).toBe('good@1\nzipped@1\n')
  const { body } = await server.get('/v1beta/skills/good')
  expect(body.files.map(({ path, executable }: never) => [path, executable])).toEqual([
    ['SKILL.md', false],
    ['references/deep/er/a.md', false],
    ['scripts/run.sh', true],
  ])
  const listed = await server.errand(['skills', 'list', ...there()])
  expect(listed.stdout).toMatch(/^NAME\s+VERSION\s+SOURCE/)
  expect(listed.stdout).toMatch(/^good\s+1\s+project\s+\S+\s+Does good\. Use it for good\.$/m)
  const json = JSON.parse((await server.errand(['skills', 'list', '--json', ...there()])).stdout)
  expect(json.map(({ name }: { name: string }) => name).sort()).toEqual(['good', 'zipped'])
  expect((await server.errand(['skills', 'remove', 'good@1', ...there()])).code).toBe(0)
  const again = await server.errand(['skills', 'remove', 'good', ...there()])
  expect(again.stderr).toContain('There is no skill "good"')
  expect(again.code).toBe(4)
})

test('without a server they go to the data directory of this machine', async () => {
  const local = folder('local', { 'SKILL.md': skillText('local') })
  expect((await server.errand(['skills', 'add', local])).stdout).toBe('local@1\n')
  expect((await server.get('/v1beta/skills/local')).body.name).toBe('local')
})

test('adding a skill reports deviations from the convention', async () => {
  const odd = folder('odd', { 'SKILL.md': skillText('even') })
  const { stdout, stderr } = await server.errand(['skills', 'add', odd, ...there()])
  expect(stdout).toBe('even@1\n')
  expect(stderr).toContain('warning: ')
  expect(stderr).toContain(`${odd}/SKILL.md: \`name\` is "even", but the folder is "odd"`)
})

test('check reports every problem with its path, and changes nothing', async () => {
  const bad = folder('bad', { 'SKILL.md': '---\nname: Bad\ndescription: ""\nmood: good\n---\n', 'a.txt': '' })
  symlinkSync('/etc/passwd', join(bad, 'link'))
  const { code, stdout, stderr } = await server.errand(['skills', 'check', bad])
  expect(code).toBe(1)
  expect(stdout).toContain(`error: ${bad}/link is a symbolic link`)
  expect(stdout).toContain(`error: ${bad}/SKILL.md: \`name\` is "Bad"; it must be`)
  expect(stdout).toContain(`error: ${bad}/SKILL.md: \`description\` is missing`)
  expect(stdout).toContain(`warning: ${bad}/SKILL.md: \`mood\` is not a field of the convention`)
  expect(stderr).toContain('cannot be used as a skill')
  const good = folder('fine', { 'SKILL.md': skillText('fine') })
  expect((await server.errand(['skills', 'check', good])).stdout).toMatch(/^fine is valid: 1 files?/)
})

test.each([
  ['does not exist', ['nowhere'], 2, /nowhere does not exist/],
  ['has no SKILL.md', ['.'], 1, /there is no SKILL\.md/],
])('a path that %s is refused before anything is uploaded', async (_what, paths, code, message) => {
  const empty = folder('empty', { 'readme.txt': '' })
  const told = await server.errand(['skills', 'add', ...paths.map((path) => join(empty, path)), ...there()])
  expect(told.stderr).toMatch(message)
  expect(told.code).toBe(code)
})

test('run --skill and agents create --skill name them', async () => {
  const named = await server.errand(['run', 'x', '--skill', 'nowhere', '--json', ...there()])
  expect(JSON.parse(named.stdout).warnings).toContainEqual(expect.objectContaining({ code: 'unknown_skill' }))
  const agent = await server.errand(['agents', 'create', '--skill', 'a', '--skill', 'b', ...there()])
  expect(JSON.parse(agent.stdout).skills).toEqual(['a', 'b'])
})
