/** Signed URLs for Google Cloud Storage, compared with Google's published strings (googleapis/conformance-tests, v4_signatures.json). */
import { generateKeyPairSync, verify } from 'node:crypto'
import { expect, test } from 'vitest'
import { parseServiceAccount, signForGoogle } from '../../src/buckets/google.ts'

const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const email = 'test-iam-credentials@dummy-project-id.iam.gserviceaccount.com'
const account = parseServiceAccount(
  JSON.stringify({
    type: 'service_account',
    client_email: email,
    private_key: privateKey.export({ type: 'pkcs8', format: 'pem' }),
  }),
)

test.each([
  {
    name: 'Simple GET',
    object: { bucket: 'test-bucket', key: 'test-object' },
    at: '2019-02-01T09:00:00Z',
    seconds: 10,
    path: '/test-bucket/test-object',
    text: 'GOOG4-RSA-SHA256\n20190201T090000Z\n20190201/auto/storage/goog4_request\n00e2fb794ea93d7adb703edaebdd509821fcc7d4f1a79ac5c8d2b394df109320',
  },
  {
    name: 'Vary expiration and timestamp',
    object: { bucket: 'test-bucket', key: 'test-object' },
    at: '2019-03-01T09:00:00Z',
    seconds: 20,
    path: '/test-bucket/test-object',
    text: 'GOOG4-RSA-SHA256\n20190301T090000Z\n20190301/auto/storage/goog4_request\n779f19fdb6fd381390e2d5af04947cf21750277ee3c20e0c97b7e46a1dff8907',
  },
  {
    name: 'Forward Slashes should not be stripped',
    object: { bucket: 'test-bucket', key: '/path/with/slashes/under_score/amper&sand/file.ext' },
    at: '2019-02-01T09:00:00Z',
    seconds: 10,
    path: '/test-bucket//path/with/slashes/under_score/amper%26sand/file.ext',
    text: 'GOOG4-RSA-SHA256\n20190201T090000Z\n20190201/auto/storage/goog4_request\n63c601ecd6ccfec84f1113fc906609cbdf7651395f4300cecd96ddd2c35164f8',
  },
])('signs a URL as Google specifies: $name', ({ object, at, seconds, path, text }) => {
  const url = new URL(signForGoogle(account, 'https://storage.googleapis.com', object, { at: new Date(at), seconds }))
  expect(url.origin + url.pathname).toBe(`https://storage.googleapis.com${path}`)
  const signature = url.searchParams.get('X-Goog-Signature')!
  expect(signature).toMatch(/^[0-9a-f]{512}$/)
  expect(verify('RSA-SHA256', Buffer.from(text), publicKey, Buffer.from(signature, 'hex'))).toBe(true)
  url.searchParams.delete('X-Goog-Signature')
  expect(Object.fromEntries(url.searchParams)).toEqual({
    'X-Goog-Algorithm': 'GOOG4-RSA-SHA256',
    'X-Goog-Credential': `${email}/${at.slice(0, 10).replaceAll('-', '')}/auto/storage/goog4_request`,
    'X-Goog-Date': at.replace(/[-:]/g, ''),
    'X-Goog-Expires': String(seconds),
    'X-Goog-SignedHeaders': 'host',
  })
})

test.each(['{}', '[]', '{"type": "authorized_user"}', '{"type": "service_account", "client_email": "a"}'])(
  'refuses a file that is not a service account’s key: %s',
  (text) => {
    expect(() => parseServiceAccount(text)).toThrow('it is not the key file of a service account')
  },
)
