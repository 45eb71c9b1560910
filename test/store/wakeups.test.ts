/** Wake-ups on a real Postgres: which nodes get them, and what happens if the connection breaks. */
import { expect, it } from 'vitest'
import { openPostgresWakeups } from '../../src/store/postgres/wakeups.ts'
import type { Wakeups } from '../../src/store/wakeups.ts'
import { lookInto } from '../support/stored.ts'
import { closingAfterEach, onPostgres } from './backends.ts'

onPostgres('wake-ups', (cluster) => {
  const opened = closingAfterEach<Wakeups>()
  const heard = (wakeups: Wakeups): (string | undefined)[] => {
    const topics: (string | undefined)[] = []
    wakeups.listen((topic) => topics.push(topic))
    return topics
  }

  async function open(url: string) {
    const said: string[] = []
    const log = {
      info: (_: object, text: string) => said.push(text),
      warn: (_: object, text: string) => said.push(text),
    }
    const wakeups = opened(openPostgresWakeups(url, { log }))
    const topics = heard(wakeups)
    return { wakeups, topics, said }
  }

  const settled = { timeout: 30_000 }

  it('reach only the other nodes of the database, each topic once however often it was sent', async () => {
    const url = await cluster().createDatabase()
    const nodes = await Promise.all([url, url, await cluster().createDatabase()].map(open))
    // Undefined: it listens from now on, and may have missed earlier wake-ups.
    for (const { topics } of nodes) await expect.poll(() => topics, settled).toEqual([undefined])
    const [sender, other, stranger] = nodes as [Awaited<ReturnType<typeof open>>, ...Awaited<ReturnType<typeof open>>[]]
    for (let i = 0; i < 100; i++) for (const topic of ['work', 'int_1']) sender.wakeups.send(topic)
    await expect.poll(() => other!.topics.slice(1).sort(), settled).toEqual(['int_1', 'work'])
    // More than fits into one message.
    const many = Array.from({ length: 2_000 }, (_, i) => `int_${String(i).padStart(22, '0')}`)
    for (const topic of many) sender.wakeups.send(topic)
    await expect.poll(() => other!.topics.slice(3).sort(), settled).toEqual(many)
    expect(sender.topics).toEqual([undefined])
    expect(stranger!.topics).toEqual([undefined])
  })

  it('resume after the connection broke, and all waiting callers poll', async () => {
    const url = await cluster().createDatabase()
    const [a, b] = [await open(url), await open(url)]
    for (const { topics } of [a, b]) await expect.poll(() => topics, settled).toEqual([undefined])
    const killed =
      "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'errand wake-ups' and datname = current_database()"
    expect(await lookInto('', url).query(killed)).toHaveLength(2)
    for (const { topics } of [a, b]) await expect.poll(() => topics, settled).toEqual([undefined, undefined])
    a.wakeups.send('work')
    await expect.poll(() => b.topics.at(-1), settled).toBe('work')
    expect(a.said).toEqual([expect.stringContaining('databaseListenUrl'), expect.stringContaining('again')])
  })

  it('log a database that can’t be reached once', async () => {
    const { wakeups, topics, said } = await open('postgres:///nothing?host=/nowhere')
    await expect.poll(() => said, settled).toHaveLength(1)
    wakeups.send('work')
    await new Promise((resolve) => setTimeout(resolve, 500))
    expect(said).toHaveLength(1)
    expect(topics).toEqual([])
  })
})
