/**
 * A certificate authority for one run, and certificates by it: what lets the guard answer in the place of a host whose
 * requests get a credential on their way. The private keys never leave the memory of this process, and the authority can
 * vouch for the named hosts alone (RFC 5280, 4.2.1.10), so that trusting it costs a sandbox nothing.
 */
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'

export interface Authority {
  /** Of the authority itself, PEM. */
  readonly certificate: string
  /** For one of its hosts, PEM. */
  issue(host: string): { readonly key: string; readonly cert: string }
}

const LIFETIME_MS = 30 * 24 * 3600 * 1000
/** Clocks differ. */
const SLACK_MS = 24 * 3600 * 1000

// ---- DER (X.690), as far as it is needed here

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

/** YYMMDDHHMMSSZ, which is for years before 2050. */
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
  serial[0] = (serial[0]! & 0x7f) | 0x40 // positive, and as long as it looks
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
        extension('13', sequence(TRUE), true), // an authority
        extension('0f', bits(2, Buffer.from([0b00000100])), true), // that signs certificates,
        extension('1e', sequence(der(0xa0, ...hosts.map((host) => sequence(dnsName(host))))), true), // for these hosts
        extension('0e', octets(ownId)),
      ],
    }),
    issue: (host) => ({
      key,
      cert: certify({
        ...shared,
        subject: host.length <= 64 ? host : 'host', // the longest that a common name may be
        publicKey: theirs.publicKey,
        extensions: [
          extension('13', sequence(), true),
          extension('0f', bits(7, Buffer.from([0b10000000])), true), // signs handshakes
          extension('25', sequence(oid('2b06010505070301'))), // as a server
          extension('11', sequence(dnsName(host))),
          extension('0e', octets(keyId(theirs.publicKey))),
          extension('23', sequence(der(0x80, ownId))),
        ],
      }),
    }),
  }
}
