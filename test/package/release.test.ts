/** Tests of script/release in a copy of the checkout: what it refuses, and everything that a dry run does. */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { packagerEnv, ROOT } from './install.ts'

const run = promisify(execFile)
const VERSION = '7.8.9-rc.1'

let copy: string
beforeAll(async () => {
  copy = await mkdtemp(join(tmpdir(), 'errand-release-'))
  // Copies the working tree's tracked and new files, and commits them, so that the copy is clean.
  const { stdout } = await run('git', ['ls-files', '--cached', '--others', '--exclude-standard', '-z'], { cwd: ROOT })
  await writeFile(join(copy, '../', `${copy.split('/').at(-1)}.list`), stdout)
  await run('sh', [
    '-ec',
    `tar -C '${ROOT}' --null -T '${copy}.list' -cf - | tar -C '${copy}' -xf -; rm '${copy}.list'`,
  ])
  for (const folder of ['.', 'console', 'site']) {
    await symlink(join(ROOT, folder, 'node_modules'), join(copy, folder, 'node_modules')).catch(() => {})
  }
  await git('init', '-q', '-b', 'main')
  await writeFile(join(copy, '.git/info/exclude'), 'node_modules\n')
  await commit()
})
afterAll(() => rm(copy, { recursive: true, force: true }))

const git = (...args: string[]) =>
  run('git', ['-c', 'user.name=test', '-c', 'user.email=test@example.com', ...args], { cwd: copy })
const commit = async () => {
  await git('add', '-A')
  await git('commit', '-q', '-m', 'Copy of the working tree')
}

function release(...args: string[]): Promise<{ code: number; said: string }> {
  return run(join(copy, 'script/release'), args, { cwd: copy, env: packagerEnv(), maxBuffer: 16 * 1024 * 1024 }).then(
    ({ stdout, stderr }) => ({ code: 0, said: stdout + stderr }),
    (error) => ({ code: error.code, said: error.stdout + error.stderr }),
  )
}

test('refuses an invalid version, and reports all problems of the checkout at once', async () => {
  expect(await release('1.2')).toMatchObject({ code: 1, said: expect.stringContaining('like 0.2.0') })
  await writeFile(join(copy, 'stray'), '')
  await git('checkout', '-q', '-b', 'other')
  await git('tag', `v${VERSION}`)
  const { code, said } = await release(VERSION)
  expect(code).toBe(1)
  expect(said.trim().split('\n')).toEqual([
    'There are changes that are not committed.',
    'Releases are made of the branch main.',
    `There is a tag v${VERSION} already.`,
    `CHANGELOG.md has no section “## ${VERSION} (unreleased)”.`,
    'package.json names no repository, which npm’s provenance needs.',
    'clients/typescript/package.json names no repository, which npm’s provenance needs.',
  ])
  await git('checkout', '-q', 'main')
  await git('tag', '-d', `v${VERSION}`)
  await rm(join(copy, 'stray'))
})

test('a dry run builds everything that would be published, with that version, and does not change the checkout', async () => {
  const changelog = await readFile(join(copy, 'CHANGELOG.md'), 'utf8')
  await writeFile(join(copy, 'CHANGELOG.md'), changelog.replace(/^## .*$/m, `## ${VERSION} (unreleased)`))
  await commit()
  const { code, said } = await release(VERSION, '--dry-run')
  expect(said).toContain('Dry run: nothing was committed.')
  expect(code).toBe(0)
  expect((await git('status', '--porcelain')).stdout).toBe('')
  expect((await git('tag')).stdout).toBe('')

  const built = join(copy, 'release')
  expect((await readdir(built)).sort()).toEqual(
    [
      'SHA256SUMS',
      `errand-${VERSION}.tgz`,
      `errand-client-${VERSION}.tgz`,
      'errand.cdx.json',
      'errand_client-7.8.9rc1-py3-none-any.whl',
      'errand_client-7.8.9rc1.tar.gz',
    ].sort(),
  )
  for (const line of (await readFile(join(built, 'SHA256SUMS'), 'utf8')).trim().split('\n')) {
    const [sum, name] = line.split('  ') as [string, string]
    expect(
      createHash('sha256')
        .update(await readFile(join(built, name)))
        .digest('hex'),
      name,
    ).toBe(sum)
  }
  const inside = await run('tar', ['-xzOf', join(built, `errand-${VERSION}.tgz`), 'package/package.json'])
  expect(JSON.parse(inside.stdout)).toMatchObject({ name: 'errand', version: VERSION })
  const day = new Date().toISOString().slice(0, 10)
  const log = await run('tar', ['-xzOf', join(built, `errand-${VERSION}.tgz`), 'package/CHANGELOG.md'])
  expect(log.stdout).toContain(`## ${VERSION} (${day})`)
  const { components } = JSON.parse(await readFile(join(built, 'errand.cdx.json'), 'utf8')) as {
    components: { name: string }[]
  }
  const names = components.map(({ name }) => name)
  expect(names).toContain('fastify')
  expect(names).not.toContain('vitest')
}, 300_000)
