/** Addresses that a caller must not reach, in every spelling we know, against servers that would notice (proof.md S1). */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { dialTcp } from '../../src/egress/dial.ts'
import { type Canary, fetchFrom, guard, openCanary } from './canary.ts'
import { LOOPBACK, METADATA } from './places.ts'
import { SINKS } from './sinks.ts'

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

const SPECIAL = [
  ...['0.255.255.255', '10.0.0.0', '10.0.0.1', '10.255.255.255', '100.64.0.0', '100.127.255.255', '127.0.0.0'],
  ...['169.254.0.0', '169.254.255.255', '172.16.0.0', '172.31.255.255', '192.0.0.0', '192.0.0.255', '192.0.2.1'],
  ...['192.88.99.1', '192.168.0.0', '192.168.255.255', '198.18.0.0', '198.19.255.255', '198.51.100.1', '203.0.113.1'],
  ...['224.0.0.1', '239.255.255.255', '240.0.0.1', '254.1.1.1', '255.255.255.254', '255.255.255.255', '0xffffffff'],
  ...['167772161', '0x0a000001', '012.0.0.1', '3232235777', '0xc0.0xa8.1.1', '10.1', '192.168.257'],
  ...['[::2]', '[100::1]', '[64:ff9b:1::1]', '[64:ff9b::10.0.0.1]', '[64:ff9b::192.168.0.1]', '[64:ff9c::8.8.8.8]'],
  ...['[2001::1]', '[2001:1::1]', '[2001:2::1]', '[2001:10::1]', '[2001:20::1]', '[2001:1ff::1]', '[2001:db8::1]'],
  ...['[2002:a00:1::]', '[2002:c0a8:101::]', '[3fff::1]', '[3fff:fff::1]', '[5f00::1]', '[4000::1]', '[1fff::1]'],
  ...['[fc00::1]', '[fdff::1]', '[fe80::1]', '[febf::1]', '[fec0::1]', '[feff::1]', '[ff00::1]', '[ff02::1]'],
  ...['[::ffff:10.0.0.1]', '[::ffff:192.168.1.1]', '[::10.0.0.1]', '[ffff::ffff:127.0.0.1]'],
]

/** Whole addresses: `HOST` stands for the canary with its port. */
const CRAFTED = [
  ...['https://user@HOST/', 'https://user:password@HOST/', 'https://example.com@HOST/', 'https://example.com:80@HOST/'],
  ...['https://example.com%40@HOST/', 'https://HOST#@example.com/', 'https://HOST?@example.com/', 'https://@HOST/'],
  ...['https://HOST\\@example.com/', 'https://example.com\\@HOST/', 'https:\\\\HOST/', 'https:/HOST/', 'https:HOST/'],
  ...['//HOST/', '///HOST/', 'HOST', '/etc/passwd', '', ' ', 'https://', 'https:///', 'https://?', 'https://:443/'],
  ...['http://HOST/', 'http://example.com/', 'http://8.8.8.8/', 'HTTP://HOST/', 'http://[::ffff:8.8.8.8]/'],
  ...['ftp://HOST/', 'ftps://HOST/', 'sftp://HOST/', 'file:///etc/passwd', 'file://HOST/x', 'gopher://HOST/_x'],
  ...['dict://HOST/x', 'ldap://HOST/x', 'ws://HOST/', 'wss://HOST/', 'unix:///run/x.sock', 'data:text/plain,x'],
  ...['javascript:0', 'blob:https://HOST/x', 'jar:https://HOST/x', 'view-source:https://HOST', 'about:blank'],
  ...['url:https://HOST/', 's3://HOST/x', 'gs://HOST/x', 'netdoc:///etc/passwd', 'http+unix://%2frun%2fx/'],
  ...['https://example.com:22/', 'https://example.com:25/', 'https://example.com:6379/', 'https://example.com:8443/'],
  ...['https://8.8.8.8:8080/', 'https://example.com:0/', 'https://example.com:65536/', 'https://example.com:99999/'],
  ...['https://example.com:-1/', 'https://example.com:4 43/', 'https://[::1', 'https://::1/', 'https://[127.0.0.1]/'],
  ...['https://[fe80::1%25eth0]/', 'https://[fe80::1%eth0]/', 'https://[::1%25lo]/', 'https://[::1%2525lo]/'],
  ...[
    'https://1.2.3.4.5/',
    'https://256.256.256.256/',
    'https://127.0.0.1.0x/',
    'https://0x100000000/',
    'https://4294967296/',
  ],
  ...['https://example.com\r\nHost: x/', 'https://exa\nmple.com/', 'https://example.com/\r\nX-A: b', '\thttps://HOST/'],
  ...[' https://HOST/', 'https://HOST/ ', 'https://HOST\u0000.example.com/', 'https://example.com\u0000@HOST/'],
  ...['https://exam_ple.com/', 'https://a..b/', 'https://.example.com/', 'https://example.com../', 'https://a*b/'],
  ...['https://a,b/', "https://a'b/", 'https://a;b/', 'https://a$b/', 'https://a!b/', 'https://a~b/', 'https://(a)/'],
  ...[
    `https://${'a'.repeat(64)}.com/`,
    `https://${'a.'.repeat(130)}com/`,
    'https://%00/',
    'https://%0a/',
    'https://a%2fb/',
  ],
]

function vectors(): string[] {
  const { port } = canaries[0]!
  const hosts = [...LOOPBACK, ...METADATA, ...SPECIAL]
  const all = [
    ...hosts.flatMap((host) => [`https://${host}/`, `https://${host}:${port}/`, `http://${host}:${port}/`]),
    ...CRAFTED.flatMap((text) => [text.replaceAll('HOST', '127.0.0.1'), text.replaceAll('HOST', `127.0.0.1:${port}`)]),
  ]
  return [...new Set(all)]
}

describe('an address that a caller must not reach', () => {
  it('shows it by itself', () => {
    // The port is open elsewhere: only the address can be the reason.
    const egress = guard({ allowPrivate: [`192.168.77.77:${canaries[0]!.port}`] })
    const passed = vectors().filter((url) => egress.faultOf(url) === undefined)
    expect(passed).toEqual([])
  })

  it.each(SINKS)('is never dialled by $name', async ({ open }) => {
    const dialled: string[] = []
    const egress = guard({
      allowPrivate: [`192.168.77.77:${canaries[0]!.port}`],
      resolve: async () => ['127.0.0.1'],
      dial(address, _, signal) {
        dialled.push(address)
        return dialTcp('127.0.0.1', canaries[0]!.port, signal)
      },
    })
    const all = vectors()
    expect(all.length).toBeGreaterThan(500)
    const sink = open(egress)
    for (const url of all) {
      await sink.attempt(url).catch((error) => expect.fail(`${JSON.stringify(url)}: ${error.message} ${error.cause}`))
    }
    sink.close()
    expect(dialled).toEqual([])
    expect(canaries.map(({ hits }) => hits)).toEqual([0, 0, 0])
  })

  it('is told in words that name no address behind a name', async () => {
    const egress = guard({ resolve: async () => ['10.11.12.13'] })
    const refusal = await fetchFrom(egress, 'https://files.example.com/x?token=s3cret').catch((error) => error)
    expect(refusal).toMatchObject({ code: 'refused', message: 'files.example.com is not a public address.' })
    expect(egress.faultOf('https://10.0.0.1/x?token=s3cret')).toBe('is not a public address')
  })

  it.each([...LOOPBACK, ...METADATA, ...SPECIAL].filter((host) => /^[\d.]+$|^\[[\da-f:.]+\]$/.test(host)))(
    'is refused as what a name stands for: %s',
    async (literal) => {
      const address = new URL(`http://${literal}`).hostname.replace(/^\[|\]$/g, '')
      const egress = guard({ resolve: async () => [address], dial: () => Promise.reject(new Error('dialled')) })
      await expect(fetchFrom(egress, 'https://name.example/')).rejects.toMatchObject({ code: 'refused' })
    },
  )
})

describe('a name that changes what it stands for', () => {
  it('is refused where one of its addresses is not public', async () => {
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

  it('is asked for once, and what was judged is what is dialled', async () => {
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
  ])('passes: %s', (url) => {
    expect(guard().faultOf(url)).toBeUndefined()
  })

  it('is a private one where the operator opened it, and there alone', () => {
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
