/**
 * Webhook delivery on every database, with retry delays in milliseconds: at least once, and from one node at a time.
 */
import type { IncomingHttpHeaders, RequestListener, ServerResponse } from 'node:http'
import { pino } from 'pino'
import { Webhook } from 'standardwebhooks'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createVault } from '../../src/accounts/vault.ts'
import { webhookSecret } from '../../src/accounts/webhook-secret.ts'
import { openWebhooks, type Webhooks, webhookOwner } from '../../src/engine/webhooks.ts'
import { listAudit } from '../../src/store/audit.ts'
import { endFromOutside } from '../../src/store/events.ts'
import { insertInteraction } from '../../src/store/insert-interaction.ts'
import { deleteInteraction } from '../../src/store/interactions.ts'
import type { Database } from '../../src/store/port.ts'
import { readWebhookLog } from '../../src/store/webhooks.ts'
import { type Canary, guard, openCanary } from '../egress/canary.ts'
import { onEveryBackend } from '../store/backends.ts'
import { ending, newInteraction, PROJECT, removal } from '../store/rows.ts'

const SECRET = 'the server’s own secret, long enough'
const vault = createVault(SECRET)
const log = pino({ level: 'silent' })

function endInteraction(db: Database, id: string) {
  return db.write(endFromOutside(db, id, ending(id, { status: 'completed' })))
}

interface Sent {
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

let receiver: Canary
let sent: Sent[]
let answer: (response: ServerResponse, nth: number) => void
beforeEach(async () => {
  sent = []
  answer = (response) => response.writeHead(204).end()
  const listener: RequestListener = (request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (text) => (body += text))
    request.on('end', () => answer(response, sent.push({ headers: request.headers, body })))
  }
  receiver = await openCanary('127.0.0.1', listener)
})

onEveryBackend((backend) => {
  const open: Webhooks[] = []
  afterEach(async () => {
    for (const webhooks of open.splice(0)) await webhooks.close()
    await receiver.close()
  })

  function sender(
    db: Database,
    delaysMs: readonly number[] = [1, 1, 1],
    allowPrivate = [`127.0.0.1:${receiver.port}`],
  ) {
    const webhooks = openWebhooks({
      deps: { db, vault, log, now: Date.now, emit: () => {}, egress: guard({ allowPrivate }) },
      secretOf: (project) => webhookSecret(SECRET, project),
      encode: ({ id, status }, revision) => ({ type: `interaction.${status}`, data: { id, revision } }),
      delaysMs,
    })
    open.push(webhooks)
    return webhooks
  }

  /** Creates a running interaction with a webhook. */
  async function running(db: Database, path = '/hook'): Promise<string> {
    const interaction = newInteraction()
    const url = `http://127.0.0.1:${receiver.port}${path}`
    const webhook = { sealedUrl: vault.seal(url, webhookOwner(interaction.id)), revision: '2026-05-20' }
    await insertInteraction(db, { ...interaction, webhook }, undefined)
    return interaction.id
  }

  async function over(db: Database, path?: string): Promise<string> {
    const id = await running(db, path)
    await endInteraction(db, id)
    return id
  }

  async function until(db: Database, id: string, state: string) {
    for (;;) {
      const found = await readWebhookLog(db, id)
      if (found?.state === state) return found
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  }

  it('is sent when the interaction has ended, with a signature that the Standard Webhooks library accepts', async () => {
    const db = await backend.open()
    const id = await running(db)
    const webhooks = sender(db)
    webhooks.wake()
    await endInteraction(db, id)
    webhooks.wake()
    const { deliveries } = await until(db, id, 'delivered')
    expect(deliveries).toEqual([{ attempt: 1, at: expect.any(Number), durationMs: expect.any(Number), status: 204 }])
    expect(sent).toHaveLength(1)
    const [{ headers, body }] = sent as [Sent]
    expect(headers).toMatchObject({
      'content-type': 'application/json',
      'api-revision': '2026-05-20',
      'webhook-id': id,
    })
    const verifier = new Webhook(webhookSecret(SECRET, PROJECT))
    const verified = verifier.verify(body, headers as Record<string, string>)
    expect(verified).toEqual({ type: 'interaction.completed', data: { id, revision: '2026-05-20' } })
    const others = [new Webhook(webhookSecret(SECRET, 'prj_other')), new Webhook(webhookSecret('another', PROJECT))]
    for (const other of others) expect(() => other.verify(body, headers as Record<string, string>)).toThrow()
    expect(() => verifier.verify(body.replace('completed', 'cancelled'), headers as Record<string, string>)).toThrow()
    const { entries } = await listAudit(db, id, { pageSize: 10 })
    expect(entries).toMatchObject([{ kind: 'webhook', host: '127.0.0.1', outcome: 'dialled' }])
  })

  it('is retried after a failure, with the same id and a new signature, and each failure is recorded', async () => {
    const db = await backend.open()
    answer = (response, nth) => {
      if (nth === 1) response.writeHead(500).end('no')
      else if (nth === 2) response.destroy()
      else if (nth === 3) response.writeHead(302, { location: '/elsewhere' }).end()
      else response.writeHead(200).end('thanks')
    }
    const id = await over(db)
    sender(db)
    const { deliveries } = await until(db, id, 'delivered')
    expect(deliveries.map(({ attempt, status }) => [attempt, status])).toEqual([
      [1, 500],
      [2, undefined],
      [3, 302],
      [4, 200],
    ])
    expect(deliveries.map(({ error }) => error)).toEqual([
      'The answer was 500.',
      expect.stringMatching(/^127\.0\.0\.1 can't be reached/),
      'The answer was 302, a redirect, which is not followed.',
      undefined,
    ])
    expect(new Set(sent.map(({ headers }) => headers['webhook-id']))).toEqual(new Set([id]))
    const verifier = new Webhook(webhookSecret(SECRET, PROJECT))
    for (const { headers, body } of sent) verifier.verify(body, headers as Record<string, string>)
  })

  it('is not retried after the receiver answered 410 Gone', async () => {
    const db = await backend.open()
    answer = (response) => response.writeHead(410).end()
    const id = await over(db)
    sender(db)
    expect((await until(db, id, 'gone')).deliveries).toMatchObject([{ status: 410 }])
    expect(sent).toHaveLength(1)
  })

  it('fails permanently after the last retry', async () => {
    const db = await backend.open()
    answer = (response) => response.writeHead(404).end()
    const id = await over(db)
    sender(db, [1, 1])
    const { deliveries, nextAt } = await until(db, id, 'failed')
    expect(deliveries).toHaveLength(3)
    expect(nextAt).toBeUndefined()
  })

  it('does not connect to an address that the egress guard refuses, and records the refusal', async () => {
    const db = await backend.open()
    const id = await over(db)
    sender(db, [], [])
    const { deliveries } = await until(db, id, 'failed')
    expect(deliveries).toMatchObject([{ attempt: 1, error: expect.stringContaining('refused') }])
    expect(receiver.hits).toBe(0)
  })

  it('is retried by another node after the first one stopped, and the time of the next attempt is readable', async () => {
    const db = await backend.open()
    answer = (response, nth) => response.writeHead(nth === 1 ? 503 : 200).end()
    const id = await over(db)
    const first = sender(db, [400])
    while (!(await readWebhookLog(db, id))?.deliveries.length) await new Promise((resolve) => setTimeout(resolve, 5))
    await first.close()
    expect((await readWebhookLog(db, id))?.nextAt).toBeGreaterThan(0)
    sender(db, [400])
    expect((await until(db, id, 'delivered')).deliveries).toHaveLength(2)
  })

  it('is sent by only one of two nodes, also if there are many webhooks', async () => {
    const db = await backend.open()
    const ids = await Promise.all(Array.from({ length: 20 }, () => over(db)))
    sender(db)
    sender(db)
    await Promise.all(ids.map((id) => until(db, id, 'delivered')))
    expect(sent.map(({ headers }) => headers['webhook-id']).sort()).toEqual([...ids].sort())
  })

  it('is not delayed by a slow receiver of another project', async () => {
    const db = await backend.open()
    const slow: ServerResponse[] = []
    answer = (response, nth) => {
      if (sent[nth - 1]!.body.includes('"slow"')) slow.push(response)
      else response.writeHead(200).end()
    }
    const held: string[] = []
    for (let i = 0; i < 20; i++) held.push(await over(db))
    const webhooks = openWebhooks({
      deps: {
        db,
        vault,
        log,
        now: Date.now,
        emit: () => {},
        egress: guard({ allowPrivate: [`127.0.0.1:${receiver.port}`] }),
      },
      secretOf: (project) => webhookSecret(SECRET, project),
      encode: ({ projectId }) => ({ speed: projectId === PROJECT ? 'slow' : 'fast' }),
    })
    open.push(webhooks)
    const other = newInteraction({ projectId: 'prj_two' })
    const url = `http://127.0.0.1:${receiver.port}/`
    const webhook = { sealedUrl: vault.seal(url, webhookOwner(other.id)), revision: '2026-05-20' }
    await insertInteraction(db, { ...other, webhook }, undefined)
    await endInteraction(db, other.id)
    webhooks.wake()
    await until(db, other.id, 'delivered')
    expect(slow).toHaveLength(4)
    answer = (response) => response.writeHead(200).end()
    for (const response of slow) response.writeHead(200).end()
    for (const id of held) await until(db, id, 'delivered')
  })

  it('is deleted with its interaction', async () => {
    const db = await backend.open()
    answer = (response) => response.writeHead(500).end()
    const id = await over(db)
    sender(db, [60_000])
    while (!(await readWebhookLog(db, id))?.deliveries.length) await new Promise((resolve) => setTimeout(resolve, 5))
    expect(await deleteInteraction(db, removal(id))).toBe(true)
    expect(await readWebhookLog(db, id)).toBeUndefined()
  })
})
