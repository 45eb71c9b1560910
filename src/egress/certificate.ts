/**
 * A certificate authority for one run. It issues certificates under which the guard answers as a host, to add a credential to
 * requests. The private keys never leave this process's memory. Name constraints (RFC 5280, 4.2.1.10) limit the authority to
 * the named hosts, so that a sandbox can trust it without risk.
 *
 * The encoding is written here, about 75 lines. `@peculiar/x509` 2 would replace it with 19 packages and asynchronous
 * WebCrypto keys, and has no class for name constraints.
 */
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'

export interface Authority {
  /** The authority's own certificate, PEM. */
  readonly certificate: string
  /** Issues a certificate and key for one of its hosts, PEM. */
  issue(host: string): { readonly key: string; readonly cert: string }
}

const LIFETIME_MS = 30 * 24 * 3600 * 1000
/** Tolerance for differing clocks. */
const SLACK_MS = 24 * 3600 * 1000

// ---- DER (X.690), the parts needed here

const SEQUENCE = 0x30
const OID = 0x06

function der(tag: number, ...content: readonly Buffer[]): Buffer {
  const body = Buffer.concat(content)
  if (body.length < 0x80) return Buffer.concat([Buffer.from([tag, body.length]), body])
  const length = Buffer.from(body.length.toString(16).padStart(body.length > 0xff ? 4 : 2, '0'), 'hex')
  return Buffer.concat([Buffer.from([tag, 0x80 | length.length]), length, body])
}

const sequence = (...content: readonly Buffer[]) => der(SEQUENCE, ...content)
const oid = (hex: string) => der(OID, Buffer.from(hex, 'hex'))
const bits = (unused: number, bytes: Uint8Array) => der(0x03, Buffer.from([unused]), Buffer.from(bytes))
const octets = (bytes: Buffer) => der(0x04, bytes)
const TRUE = der(0x01, Buffer.from([0xff]))

/** UTCTime, YYMMDDHHMMSSZ. Only valid before the year 2050. */
function utcTime(ms: number): Buffer {
  return der(0x17, Buffer.from(`${new Date(ms).toISOString().replace(/\D/g, '').slice(2, 14)}Z`))
}

// ---- X.509

const ECDSA_SHA256 = sequence(oid('2a8648ce3d040302'))

function name(text: string): Buffer {
  return sequence(der(0x31, sequence(oid('550403'), der(0x0c, Buffer.from(text)))))
}

function extension(id: string, value: Buffer, critical = false): Buffer {
  return sequence(oid(`551d${id}`), ...(critical ? [TRUE] : []), octets(value))
}

const dnsName = (host: string) => der(0x82, Buffer.from(host))

interface Terms {
  readonly subject: string
  readonly issuer: string
  readonly publicKey: KeyObject
  readonly extensions: readonly Buffer[]
  readonly signer: KeyObject
}

function certify({ subject, issuer, publicKey, extensions, signer }: Terms): string {
  const serial = randomBytes(16)
  serial[0] = (serial[0]! & 0x7f) | 0x40 // positive, without a leading zero byte
  const signed = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))), // version 3
    der(0x02, serial),
    ECDSA_SHA256,
    name(issuer),
    sequence(utcTime(Date.now() - SLACK_MS), utcTime(Date.now() + LIFETIME_MS)),
    name(subject),
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(...extensions)),
  )
  const whole = sequence(signed, ECDSA_SHA256, bits(0, sign('sha256', signed, signer)))
  const lines = whole.toString('base64').match(/.{1,64}/g)!
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`
}

function keyId(publicKey: KeyObject): Buffer {
  return createHash('sha256')
    .update(publicKey.export({ type: 'spki', format: 'der' }))
    .digest()
    .subarray(0, 20)
}

export function createAuthority(subject: string, hosts: readonly string[]): Authority {
  const own = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const theirs = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const key = theirs.privateKey.export({ type: 'pkcs8', format: 'pem' }) as string
  const shared = { issuer: subject, signer: own.privateKey }
  const ownId = keyId(own.publicKey)
  return {
    certificate: certify({
      ...shared,
      subject,
      publicKey: own.publicKey,
      extensions: [
        extension('13', sequence(TRUE), true), // basic constraints: an authority
        extension('0f', bits(2, Buffer.from([0b00000100])), true), // key usage: signs certificates
        extension('1e', sequence(der(0xa0, ...hosts.map((host) => sequence(dnsName(host))))), true), // name constraints: these hosts
        extension('0e', octets(ownId)),
      ],
    }),
    issue: (host) => ({
      key,
      cert: certify({
        ...shared,
        subject: host.length <= 64 ? host : 'host', // a common name has at most 64 characters
        publicKey: theirs.publicKey,
        extensions: [
          extension('13', sequence(), true),
          extension('0f', bits(7, Buffer.from([0b10000000])), true), // key usage: signs handshakes
          extension('25', sequence(oid('2b06010505070301'))), // extended key usage: TLS server
          extension('11', sequence(dnsName(host))),
          extension('0e', octets(keyId(theirs.publicKey))),
          extension('23', sequence(der(0x80, ownId))),
        ],
      }),
    }),
  }
}
