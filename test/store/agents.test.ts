/** Agents and their versions in the database, on every backend. */
import { expect, it } from 'vitest'
import type { AgentConfig } from '../../src/domain/agent.ts'
import type { AgentQuery } from '../../src/store/agent-store.ts'
import { agentConfigAt, createAgentStore } from '../../src/store/agents.ts'
import { onEveryBackend } from './backends.ts'
import { PROJECT, times } from './rows.ts'

const LIST: AgentQuery = { labels: {}, order: 'asc', pageSize: 100 }

onEveryBackend((backend) => {
  async function open(now?: () => number) {
    const db = await backend.open()
    return { db, agents: createAgentStore({ db, defaultModel: 'fake', now }) }
  }

  it('stores an agent with its first version, and refuses the same id in its project', async () => {
    const { db, agents } = await open(() => 1_700_000_000_123)
    const config: AgentConfig = { displayName: 'Ü 🙂 \0', labels: { a: '1' }, network: { allow: ['example.com'] } }
    const agent = await agents.create(PROJECT, { id: 'one', config })
    const at = 1_700_000_000_123
    expect(agent).toEqual({ id: 'one', config, version: 1, createdAt: at, updatedAt: at })
    expect(await agents.get(PROJECT, 'one')).toEqual(agent)
    expect(await agents.get('prj_other', 'one')).toBeUndefined()
    expect(await agents.versions(PROJECT, 'one', { pageSize: 5 })).toEqual({ agents: [agent], next: undefined })
    await expect(agents.create(PROJECT, { id: 'one', config: {} })).rejects.toMatchObject({ code: 'conflict' })
    expect(await agentConfigAt(db, PROJECT, 'one', undefined)).toEqual(agent)
    expect((await agents.create('prj_other', { id: 'one', config: {} })).version).toBe(1)
    expect((await agents.create(PROJECT, { config: {} })).id).toMatch(/^agt_\w{22}$/)
  })

  it('stores one of many agents that are created concurrently with one id', async () => {
    const { agents } = await open()
    const attempts = times(20, (i) => agents.create(PROJECT, { id: 'one', config: { description: `${i}` } }))
    const settled = await Promise.allSettled(attempts)
    expect(settled.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    expect((await agents.versions(PROJECT, 'one', { pageSize: 100 }))!.agents).toHaveLength(1)
  })

  it('loses no concurrent update, and stores each as a version', async () => {
    const { agents } = await open()
    await agents.create(PROJECT, { id: 'one', config: { skills: [] } })
    const add = (name: string) =>
      agents.update(PROJECT, 'one', ({ config }) => ({
        ...config,
        skills: [...config.skills!, name],
        labels: { name },
      }))
    await Promise.all(times(20, (i) => add(`${i}`)))
    const agent = (await agents.get(PROJECT, 'one'))!
    expect(agent.version).toBe(21)
    expect(agent.config.skills!.toSorted()).toEqual(times(20, String).toSorted())
    const versions = (await agents.versions(PROJECT, 'one', { pageSize: 100 }))!.agents
    expect(versions.map(({ version, config }) => [version, config.skills!.length])).toEqual(
      times(21, (i) => [21 - i, 20 - i]),
    )
    // The list's filter uses the labels of the newest version only.
    const { name } = agent.config.labels as { name: string }
    expect((await agents.list(PROJECT, { ...LIST, labels: { name } })).agents).toEqual([agent])
    const others = times(20, String).filter((other) => other !== name)
    for (const other of others) {
      expect((await agents.list(PROJECT, { ...LIST, labels: { name: other } })).agents).toEqual([])
    }
  })

  it('makes no version if an update changes nothing, and writes nothing if it throws', async () => {
    const { agents } = await open()
    const agent = await agents.create(PROJECT, { id: 'one', config: { model: 'm' } })
    expect(await agents.update(PROJECT, 'one', ({ config }) => ({ ...config }))).toEqual(agent)
    const refuse = () => {
      throw new Error('no')
    }
    await expect(agents.update(PROJECT, 'one', refuse)).rejects.toThrow('no')
    expect(await agents.get(PROJECT, 'one')).toEqual(agent)
    await expect(agents.update(PROJECT, 'none', () => ({}))).rejects.toMatchObject({ code: 'not_found' })
  })

  it('reads versions one by one, and in pages with the newest first', async () => {
    let now = 1_000
    const { db, agents } = await open(() => ++now)
    await agents.create(PROJECT, { id: 'one', config: { description: '1' } })
    for (const description of ['2', '3', '4', '5']) await agents.update(PROJECT, 'one', () => ({ description }))
    expect(await agents.version(PROJECT, 'one', 2)).toMatchObject({ version: 2, config: { description: '2' } })
    expect(await agentConfigAt(db, PROJECT, 'one', 5)).toEqual(await agents.get(PROJECT, 'one'))
    for (const none of [0, 6, 999_999_999_999_999]) expect(await agents.version(PROJECT, 'one', none)).toBeUndefined()
    const seen: number[] = []
    let after: string | undefined
    do {
      const page = (await agents.versions(PROJECT, 'one', { pageSize: 2, after }))!
      seen.push(...page.agents.map(({ version }) => version))
      after = page.next
    } while (after !== undefined)
    expect(seen).toEqual([5, 4, 3, 2, 1])
    for (const nonsense of ['', 'x', '-1', '1e9', '9'.repeat(15), '9'.repeat(40)]) {
      expect(await agents.versions(PROJECT, 'one', { pageSize: 2, after: nonsense })).toBeDefined()
    }
    expect(await agents.versions(PROJECT, 'none', { pageSize: 2 })).toBeUndefined()
    expect(await agents.version(PROJECT, 'none', 1)).toBeUndefined()
  })

  it('lists agents by age in pages, filtered by model and labels', async () => {
    let now = 1_000
    // Three are created in each millisecond, so that the order of their ids, by bytes, decides.
    const { agents } = await open(() => 1_000 + Math.floor(now++ / 6))
    const ids = ['b', 'B', '_', 'a', 'Z', 'z', '0', 'é', 'A', '-']
    for (const [i, id] of ids.entries()) {
      const model = [undefined, 'fake', 'other'][i % 3]
      await agents.create(PROJECT, { id, config: { ...(model && { model }), labels: { i: `${i % 2}`, id } } })
    }
    await agents.create('prj_other', { id: 'not-mine', config: { labels: { i: '0' } } })
    const all = (await agents.list(PROJECT, LIST)).agents
    const bytes = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b))
    expect(all).toEqual(all.toSorted((a, b) => a.createdAt - b.createdAt || bytes(a.id, b.id)))
    expect(all.map(({ id }) => id).toSorted()).toEqual(ids.toSorted())
    for (const order of ['asc', 'desc'] as const) {
      const paged: string[] = []
      let after: string | undefined
      do {
        const page = await agents.list(PROJECT, { ...LIST, order, pageSize: 3, after })
        paged.push(...page.agents.map(({ id }) => id))
        after = page.next
      } while (after !== undefined)
      expect(paged).toEqual((order === 'asc' ? all : all.toReversed()).map(({ id }) => id))
    }
    const found = async (query: Partial<AgentQuery>) =>
      (await agents.list(PROJECT, { ...LIST, ...query })).agents.map(({ id }) => id).toSorted()
    const only = (want: (i: number) => boolean) => ids.filter((_, i) => want(i)).toSorted()
    expect(await found({ model: 'other' })).toEqual(only((i) => i % 3 === 2))
    expect(await found({ model: 'fake' })).toEqual(only((i) => i % 3 !== 2))
    expect(await found({ labels: { i: '1' } })).toEqual(only((i) => i % 2 === 1))
    expect(await found({ labels: { i: '1', id: 'B' }, model: 'fake' })).toEqual(['B'])
    expect(await found({ labels: { none: '' } })).toEqual([])
    for (const nonsense of ['', '.', 'x.y', '1e3.a', `${'9'.repeat(40)}.a`]) {
      expect((await agents.list(PROJECT, { ...LIST, after: nonsense })).agents).toBeInstanceOf(Array)
    }
  })

  it('removes an agent with its versions and labels, also during updates, and frees its id', async () => {
    const { db, agents } = await open()
    await agents.create(PROJECT, { id: 'one', config: { labels: { a: '1' } } })
    await agents.create(PROJECT, { id: 'two', config: { labels: { a: '1' } } })
    const updates = times(10, (i) => agents.update(PROJECT, 'one', () => ({ labels: { a: '1', i: `${i}` } })))
    const [removed] = await Promise.all([
      Promise.all(times(5, () => agents.remove(PROJECT, 'one'))),
      Promise.allSettled(updates),
    ])
    expect(removed.filter(Boolean)).toHaveLength(1)
    expect(await agents.get(PROJECT, 'one')).toBeUndefined()
    expect(await db.query.selectFrom('agent_versions').select('agent_id').execute()).toEqual([{ agent_id: 'two' }])
    expect(await db.query.selectFrom('labels').select('object_id').execute()).toEqual([{ object_id: 'two' }])
    expect((await agents.create(PROJECT, { id: 'one', config: {} })).version).toBe(1)
  })
})
