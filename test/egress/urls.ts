/** Places that a caller must not reach (proof.md S1): this machine, a cloud's metadata service, what is not public; by every spelling we know. */

export const LOOPBACK = [
  ...['127.0.0.1', '127.0.0.2', '127.1', '127.0.1', '127.127.127.127', '127.255.255.254', '127.0.0.1.', '127.1.'],
  ...['2130706433', '0x7f000001', '0x7F000001', '017700000001', '0x7f.0.0.1', '0x7f.1', '0177.0.0.1', '0177.1'],
  ...['0177.0x0.0.0x1', '127.0x000001', '00000177.0.0.1', '0', '0.0.0.0', '0x0', '00', '0.1', '0.0.0.1'],
  ...['１２７.0.0.1', '①②⑦.⓪.⓪.①', '127。0。0。1', '127．0．0．1', '127｡1', '%31%32%37.0.0.1', '127%2e0%2e0%2e1'],
  ...['[::1]', '[0:0:0:0:0:0:0:1]', '[0000:0000:0000:0000:0000:0000:0000:0001]', '[::0001]', '[::]', '[0::0]'],
  ...['[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[::FFFF:7F00:0001]', '[0:0:0:0:0:ffff:127.0.0.1]', '[::ffff:0:0]'],
  ...['[::127.0.0.1]', '[::7f00:1]', '[::ffff:0:127.0.0.1]', '[64:ff9b::127.0.0.1]', '[64:ff9b::7f00:1]'],
  ...['[2002:7f00:1::]', '[2002:7f00:0001::1]', '[2001:0:7f00:1::]', '[64:ff9b:1::127.0.0.1]'],
  ...[
    'localhost',
    'LOCALHOST',
    'LocalHost.',
    'localhost.',
    'a.localhost',
    'a.b.localhost.',
    'ｌｏｃａｌｈｏｓｔ',
    'local%68ost',
  ],
]

export const METADATA = [
  ...['169.254.169.254', '2852039166', '0xa9fea9fe', '0xA9.0xFE.0xA9.0xFE', '0251.0376.0251.0376', '025177524776'],
  ...['169.254.43518', '169.16689662', '0xa9.254.0251.254', '169.254.169.254.', '１６９.254.169.254'],
  ...['[::ffff:169.254.169.254]', '[::ffff:a9fe:a9fe]', '[0:0:0:0:0:ffff:a9fe:a9fe]', '[::a9fe:a9fe]'],
  ...['[::169.254.169.254]', '[64:ff9b::169.254.169.254]', '[64:ff9b::a9fe:a9fe]', '[2002:a9fe:a9fe::1]'],
  ...['[fd00:ec2::254]', '[fe80::a9fe:a9fe]', '100.100.100.200', '192.0.0.192'],
]

export const SPECIAL = [
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

/** All URLs that must be refused. `port` is a canary's. */
export function vectors(port: number): string[] {
  const hosts = [...LOOPBACK, ...METADATA, ...SPECIAL]
  const all = [
    ...hosts.flatMap((host) => [`https://${host}/`, `https://${host}:${port}/`, `http://${host}:${port}/`]),
    ...CRAFTED.flatMap((text) => [text.replaceAll('HOST', '127.0.0.1'), text.replaceAll('HOST', `127.0.0.1:${port}`)]),
  ]
  return [...new Set(all)]
}
