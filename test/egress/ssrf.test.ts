/** Addresses that callers must not reach, in every known spelling, with canary servers that notice connections (row S1 of docs/proof.md). */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { dialTcp } from '../../src/egress/dial.ts'
import { type Canary, fetchFrom, guard, openCanary } from './canary.ts'
import { SINKS } from './sinks.ts'
import { LOOPBACK, METADATA, SPECIAL, vectors } from './urls.ts'

let canaries: Canary[]
beforeAll(async () => {
  const first = await openCanary('127.0.0.1')
  canaries = [
    first,
    await openCanary('::1', undefined, first.port),
    await openCanary('127.0.0.2', undefined, first.port),
  ]
})
afterAll(() => Promise.all(canaries.map((canary) => canary.close())))

describe('an address that a caller must not reach', () => {
  it('is refused by its URL alone', () => {
    // The port is allowed on another address, so only the address can be the reason.
    const egress = guard({ allowPrivate: [`192.168.77.77:${canaries[0]!.port}`] })
    const passed = vectors(canaries[0]!.port).filter((url) => egress.faultOf(url) === undefined)
    expect(passed).toEqual([])
  })

  it.each(SINKS)('is never dialed by $name', async ({ open }) => {
    const dialled: string[] = []
    const egress = guard({
      allowPrivate: [`192.168.77.77:${canaries[0]!.port}`],
      resolve: async () => ['127.0.0.1'],
      dial(address, _, signal) {
        dialled.push(address)
        return dialTcp('127.0.0.1', canaries[0]!.port, signal)
      },
    })
    const all = vectors(canaries[0]!.port)
    expect(all.length).toBeGreaterThan(500)
    const sink = open(egress)
    for (const url of all) {
      await sink.attempt(url).catch((error) => expect.fail(`${JSON.stringify(url)}: ${error.message} ${error.cause}`))
    }
    sink.close()
    expect(dialled).toEqual([])
    expect(canaries.map(({ hits }) => hits)).toEqual([0, 0, 0])
  })

  it('is refused with a message that does not reveal the address of a name', async () => {
    const egress = guard({ resolve: async () => ['10.11.12.13'] })
    const refusal = await fetchFrom(egress, 'https://files.example.com/x?token=s3cret').catch((error) => error)
    expect(refusal).toMatchObject({ code: 'refused', message: 'files.example.com is not a public address.' })
    expect(egress.faultOf('https://10.0.0.1/x?token=s3cret')).toBe('is not a public address')
  })

  it.each([...LOOPBACK, ...METADATA, ...SPECIAL].filter((host) => /^[\d.]+$|^\[[\da-f:.]+\]$/.test(host)))(
    'is refused as the address of a name: %s',
    async (literal) => {
      const address = new URL(`http://${literal}`).hostname.replace(/^\[|\]$/g, '')
      const egress = guard({ resolve: async () => [address], dial: () => Promise.reject(new Error('dialled')) })
      await expect(fetchFrom(egress, 'https://name.example/')).rejects.toMatchObject({ code: 'refused' })
    },
  )
})

describe('a name whose addresses change', () => {
  it('is refused if one of its addresses is not public', async () => {
    for (const addresses of [
      ['93.184.215.14', '127.0.0.1'],
      ['127.0.0.1', '93.184.215.14'],
      ['2606:2800::1', '::1'],
      ['93.184.215.14', 'fe80::1%eth0'],
      ['93.184.215.14', 'nonsense'],
    ]) {
      const egress = guard({ resolve: async () => addresses, dial: () => Promise.reject(new Error('dialled')) })
      await expect(fetchFrom(egress, 'https://mixed.example/')).rejects.toMatchObject({ code: 'refused' })
    }
  })

  it('is resolved once, and the checked address is dialed', async () => {
    const answers = [['93.184.215.14'], ['127.0.0.1']]
    const dialled: string[] = []
    const egress = guard({
      resolve: async () => answers.shift() ?? [],
      dial(address, port) {
        dialled.push(`${address} ${port}`)
        return Promise.reject(Object.assign(new Error(), { code: 'ECONNREFUSED' }))
      },
    })
    await expect(fetchFrom(egress, 'https://rebind.example/')).rejects.toMatchObject({
      code: 'unreachable',
      message: "rebind.example can't be reached (ECONNREFUSED).",
    })
    expect(dialled).toEqual(['93.184.215.14 443'])
    await expect(fetchFrom(egress, 'https://rebind.example/')).rejects.toMatchObject({ code: 'refused' })
    expect(dialled).toHaveLength(1)
  })
})

describe('an address that a caller may reach', () => {
  it.each([
    ...['https://example.com/', 'https://EXAMPLE.com./a?b#c', 'https://example.com:443/', 'https://example.com:80/'],
    ...['https://münchen.example/', 'https://xn--mnchen-3ya.example/', 'https://8.8.8.8/', 'https://134744072/'],
    ...['https://[2606:4700:4700::1111]/', 'https://[::ffff:8.8.8.8]/', 'https://[64:ff9b::8.8.8.8]/'],
    ...['https://9.255.255.255/', 'https://11.0.0.0/', 'https://100.63.255.255/', 'https://100.128.0.0/'],
    ...['https://172.15.255.255/', 'https://172.32.0.0/', 'https://192.167.255.255/', 'https://223.255.255.255/'],
    ...['https://[2001:200::1]/', 'https://[2001:db7::1]/', 'https://[2003::1]/', 'https://[3ffe::1]/'],
  ])('is allowed: %s', (url) => {
    expect(guard().faultOf(url)).toBeUndefined()
  })

  it('may be private if the operator allowed it, and only there', () => {
    const { faultOf } = guard({
      allowPrivate: ['127.0.0.1:9000', '10.1.0.0/16', '10.2.0.0/16:81', '[::1]:9001', 'fd00::/8:82'],
    })
    const open = [
      ...[
        'http://127.0.0.1:9000/',
        'https://127.0.0.1:9000/',
        'http://localhost:9000/',
        'http://[::ffff:127.0.0.1]:9000',
      ],
      ...[
        'http://10.1.2.3/',
        'https://10.1.255.255/',
        'http://10.2.0.1:81/',
        'http://[::1]:9001/',
        'http://[fd12::1]:82/',
      ],
    ]
    const closed = [
      ...[
        'http://127.0.0.1/',
        'http://127.0.0.2:9000/',
        'http://127.0.0.1:9001/',
        'http://10.1.2.3:81/',
        'https://10.0.0.1/',
      ],
      ...['http://10.2.0.1/', 'http://[::1]/', 'http://[::1]:9000/', 'http://[fc00::1]:82/', 'http://8.8.8.8:9000/'],
    ]
    expect(open.filter((url) => faultOf(url) !== undefined)).toEqual([])
    expect(closed.filter((url) => faultOf(url) === undefined)).toEqual([])
  })
})
