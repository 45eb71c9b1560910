/** The registry on every database: contents with a version stay, others are removed after a while, and concurrent writers lose nothing. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { openDiskBlobs } from '../../src/blobs/disk.ts'
import { readFolder } from '../../src/skills/folder.ts'
import { createRegistry, type GoodFolder } from '../../src/skills/registry.ts'
import { createSkillCache } from '../../src/skills/skill-cache.ts'
import { onEveryBackend } from '../store/backends.ts'
import { PROJECT, times } from '../store/rows.ts'
import { skillText } from '../support/zip.ts'

const OTHER = 'prj_other'
const HOUR = 3_600_000
const LIMITS = { skillBytes: 1_000_000, skillFiles: 100 }
const place = mkdtempSync(join(tmpdir(), 'errand-test-'))
afterAll(() => rmSync(place, { recursive: true }))

let folders = 0
async function folder(name: string, text: string): Promise<GoodFolder> {
  const directory = join(place, `${++folders}`, name)
  mkdirSync(directory, { recursive: true })
  writeFileSync(join(directory, 'SKILL.md'), skillText(name, text))
  return (await readFolder(directory, LIMITS, name)) as GoodFolder
}

onEveryBackend((backend) => {
  async function open() {
    const clock = { now: Date.now() }
    const directory = join(place, `blobs-${++folders}`)
    const [db, blobs] = await Promise.all([backend.open(), openDiskBlobs(directory)])
    const registry = createRegistry({ db, blobs, versionsPerProject: 100, now: () => clock.now })
    const cache = createSkillCache({ directory: join(place, `shelf-${folders}`), db, blobs })
    async function kept(): Promise<string[]> {
      const owners: string[] = []
      for await (const owner of blobs.owners()) owners.push(owner)
      return owners
    }
    return { registry, cache, clock, directory, kept }
  }

  it('counts versions up, finds them by name and number, and lists the newest first', async () => {
    const { registry, clock } = await open()
    for (const text of ['one', 'two', 'two', 'three']) {
      clock.now += 1000
      await registry.add(PROJECT, await folder('a', text))
    }
    expect((await registry.find(PROJECT, 'a'))!).toMatchObject({ skill: { version: 3 }, versions: [3, 2, 1] })
    expect((await registry.find(PROJECT, 'a', 2))!.skill).toMatchObject({
      version: 2,
      size: skillText('a', 'two').length,
    })
    const first = (await registry.versions(PROJECT, 'a', { pageSize: 2 }))!
    expect(first.skills.map(({ version }) => version)).toEqual([3, 2])
    const rest = (await registry.versions(PROJECT, 'a', { pageSize: 2, after: first.next }))!
    expect([rest.skills.map(({ version }) => version), rest.next]).toEqual([[1], undefined])
    expect(await registry.find(OTHER, 'a')).toBeUndefined()
    expect(await registry.versions(OTHER, 'a', { pageSize: 2 })).toBeUndefined()
    expect(await registry.remove(OTHER, 'a')).toBe('none')
  })

  it('lists each skill that the project sees once, in order', async () => {
    const { registry, clock } = await open()
    for (const [owner, name] of [
      ['', 'shared'],
      ['', 'taken'],
      [PROJECT, 'taken'],
      [PROJECT, 'own'],
      [OTHER, 'theirs'],
    ] as const) {
      clock.now += 1000
      await registry.add(owner, await folder(name, owner))
    }
    const names: string[] = []
    for (let after: string | undefined; ; ) {
      const page = await registry.list(PROJECT, { order: 'desc', pageSize: 1, after })
      names.push(...page.skills.map(({ name, origin }) => `${origin} ${name}`))
      after = page.next
      if (after === undefined) break
    }
    expect(names).toEqual(['project own', 'project taken', 'server shared'])
    expect([...(await registry.lookUp(PROJECT, ['shared', 'taken@1', 'theirs', 'own@2', '../x'])).keys()]).toEqual([
      'shared',
      'taken@1',
    ])
  })

  it('stores each different content of concurrent uploads as a version with its own number', async () => {
    const { registry } = await open()
    const texts = await Promise.all(times(8, (i) => folder('busy', `text ${i % 4}`)))
    await Promise.all(texts.map((each) => registry.add(PROJECT, each)))
    const { skills } = (await registry.versions(PROJECT, 'busy', { pageSize: 100 }))!
    const numbers = skills.map(({ version }) => version)
    expect(numbers).toEqual(numbers.map((_version, i) => numbers.length - i))
    expect(new Set(skills.map(({ digest }) => digest)).size).toBe(4)
    const pairs = skills.slice(1).map((skill, i) => [skill.digest, skills[i]!.digest])
    for (const [before, after] of pairs) expect(before).not.toBe(after)
  })

  it('stores a content once for all versions, and keeps it for a while without one', async () => {
    const { registry, cache, clock, kept } = await open()
    const { skill } = await registry.add(PROJECT, await folder('same', 'text'))
    await registry.add(OTHER, await folder('same', 'text'))
    expect(await kept()).toHaveLength(1)
    await registry.remove(PROJECT, 'same')
    await registry.sweep(HOUR)
    await registry.remove(OTHER, 'same')
    await registry.sweep(HOUR)
    clock.now += HOUR - 1000
    await registry.sweep(HOUR)
    // A run that was accepted earlier still has it.
    expect(await (await cache.content(skill))!.instructions()).toBe('text')
    clock.now += 2000
    await registry.sweep(HOUR)
    expect(await kept()).toEqual([])
    expect(await cache.content(skill)).toBeUndefined()
    // It can be added again.
    expect((await registry.add(PROJECT, await folder('same', 'text'))).skill).toMatchObject({
      version: 2,
      digest: skill.digest,
    })
    clock.now += 9 * HOUR
    await registry.sweep(HOUR)
    expect(await (await cache.content(skill))!.instructions()).toBe('text')
  })

  it('keeps a content that is added again in time', async () => {
    const { registry, cache, clock } = await open()
    const { skill } = await registry.add(PROJECT, await folder('back', 'text'))
    await registry.remove(PROJECT, 'back')
    await registry.sweep(HOUR)
    await registry.add(PROJECT, await folder('back', 'text'))
    clock.now += 9 * HOUR
    await registry.sweep(HOUR)
    expect(await (await cache.content(skill))!.instructions()).toBe('text')
  })

  it('removes the remains of an interrupted upload from the file store', async () => {
    const { registry, clock, directory, kept } = await open()
    mkdirSync(join(directory, 'skl_00000000aaaaaaaaaaaaaa'))
    mkdirSync(join(directory, 'int_00000000aaaaaaaaaaaaaa'))
    await registry.add(PROJECT, await folder('stays', 'text'))
    clock.now += 9 * HOUR
    await registry.sweep(HOUR)
    const left = await kept()
    expect(left).toHaveLength(2)
    expect(left).toContain('int_00000000aaaaaaaaaaaaaa')
  })
})
