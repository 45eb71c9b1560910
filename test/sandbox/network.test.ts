/** A sandbox reaches no address, socket or name of the host. Canaries on the host record what arrives. */
import { createSocket, type Socket } from 'node:dgram'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { networkInterfaces } from 'node:os'
import { expect, test } from 'vitest'
import { openWorld, run } from './fixture.ts'
import { attackNetwork } from './network-attacks.ts'

interface Canaries {
  readonly port: number
  readonly abstract: string
  hits(): number
  close(): void
}

/** Listens on TCP and UDP on every address of this machine, and on an abstract socket. */
async function openCanaries(): Promise<Canaries> {
  let hits = 0
  const abstract = `errand-canary-${process.pid}`
  const listen = (where: object) => {
    const server = createServer((socket) => {
      hits++
      socket.destroy()
    })
    return new Promise<Server>((resolve, reject) => server.once('error', reject).listen(where, () => resolve(server)))
  }
  const tcp = await listen({ host: '::', port: 0 })
  const unix = await listen({ path: `\0${abstract}` })
  const { port } = tcp.address() as AddressInfo
  const udp = await new Promise<Socket>((resolve, reject) => {
    const socket = createSocket('udp6').on('message', () => hits++)
    socket.once('error', reject).bind(port, '::', () => resolve(socket))
  })
  return {
    port,
    abstract,
    hits: () => hits,
    close() {
      for (const canary of [tcp, unix, udp]) canary.close()
    },
  }
}

test('without a network no attempt succeeds, and nothing arrives', async () => {
  const [world, canaries] = await Promise.all([openWorld(), openCanaries()])
  try {
    const own = Object.values(networkInterfaces()).flatMap((list) => list!.map(({ address }) => address))
    const addresses = [
      ...new Set([...own, '169.254.169.254', '192.0.2.1', '2001:db8::1', '::1', '127.0.0.1', '0.0.0.0']),
    ]
    const sandbox = await world.sandbox()
    expect(await attackNetwork(sandbox, { ...canaries, addresses })).toEqual([])
    expect((await run(sandbox, 'bash', "grep -o '[a-z0-9]*:' /proc/net/dev")).output).toBe('lo:\n')
    expect(canaries.hits()).toBe(0)
  } finally {
    canaries.close()
    await world.close()
  }
})
