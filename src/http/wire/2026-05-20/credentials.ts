/** Credentials in revision 2026-05-20. Requests contain the secret; answers never do. */
import { z } from 'zod'
import type { Credential } from '../../../domain/credential.ts'
import type { Warning } from '../../../domain/event.ts'
import { check, unknownFields } from '../../request/fields.ts'
import type { Body, CredentialCodec, CredentialPatchRequest, NewCredentialRequest } from '../codec.ts'
import { rfc3339 } from '../time.ts'
import { nextPageToken, time } from './common-fields.ts'
import { secretFields, secretType, toStoredSecret } from './secrets.ts'

const MAX_NAME_CHARS = 512
const MAX_HOSTS = 20
const READ_ONLY = new Set(['createTime', 'updateTime', 'lastUsedTime', 'warnings'])

const host = z
  .string()
  .max(260)
  .regex(/^(\*\.)?[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:\d{1,5})?$/, {
    error: 'must be a host such as "api.example.com", "*.example.com" or "api.example.com:8443"',
  })

const fields = {
  name: z
    .string()
    .max(MAX_NAME_CHARS)
    .regex(/^[^\u0000-\u001f\u007f]*$/, { error: 'must not contain control characters' })
    .refine((name) => name.isWellFormed(), { error: 'is not Unicode (a lone surrogate)' })
    .nullish()
    .meta({ description: 'A name for people to read.', examples: ['Tracker, read-only'] }),
  allowedHosts: z
    .array(host)
    .min(1)
    .max(MAX_HOSTS)
    .nullish()
    .meta({
      description:
        'The only hosts that may receive the credential. Without a port: the scheme’s default port. Set this: otherwise anyone who can start a run in this project can have it sent to any host.',
      examples: [['mcp.example.com', '*.api.example.com']],
    }),
  ...secretFields,
}

const newCredential = z
  .object({
    id: z
      .string()
      .regex(/^[a-z][a-z0-9-]{0,62}$/, {
        error: 'must be 1 to 63 lower-case letters, digits or hyphens, the first one a letter',
      })
      .nullish()
      .meta({
        description: 'An id of your own. Absent: the server generates one. An id that exists is 409.',
        examples: ['tracker'],
      }),
    type: secretType.meta({
      description:
        'How it authenticates, with the fields that the type needs: `bearer` (token), `headers` (headers), `basic` (username, password), or `oauth2` (refreshToken, or clientId and clientSecret, or accessToken; optionally tokenUrl, scopes).',
    }),
    ...fields,
  })
  .meta({
    title: 'NewCredential',
    description: 'A secret to store encrypted and use by its id. It is never shown again.',
    examples: [{ id: 'tracker', type: 'bearer', token: 's3cr3t', allowedHosts: ['mcp.example.com'] }],
  })

const credentialPatch = z
  .object({
    type: secretType.nullish().meta({ description: 'A change of type needs all fields of the new type.' }),
    ...fields,
  })
  .meta({
    title: 'CredentialPatch',
    description: 'Absent fields stay as they are, `null` clears a field. To rotate the secret, send its new value.',
    examples: [{ token: 'n3w-s3cr3t' }],
  })

const credential = z
  .object({
    id: z.string().meta({ examples: ['tracker'] }),
    name: z.string().optional(),
    type: z.string().meta({ examples: ['bearer'] }),
    allowedHosts: z.array(z.string()).optional().meta({ description: 'Absent: any host may receive it.' }),
    createTime: time(),
    updateTime: time().meta({ description: 'Also set when a run renews the token.' }),
    lastUsedTime: time().optional().meta({ description: 'Accurate to the minute.' }),
    warnings: z.array(z.looseObject({ code: z.string(), message: z.string() })).optional(),
  })
  .meta({ title: 'Credential', description: 'A stored credential, without its secret.' })

export const credentialSchemas = {
  newCredential,
  credentialPatch,
  credential,
  credentialList: z
    .object({
      credentials: z.array(credential),
      nextPageToken,
    })
    .meta({ title: 'CredentialList' }),
}

export const credentialCodec: CredentialCodec = {
  decodeNew: decodeNewCredential,
  decodePatch: decodeCredentialPatch,
  encode: encodeCredential,
  encodeList: (credentials, nextPageToken) => ({
    credentials: credentials.map((credential) => encodeCredential(credential)),
    nextPageToken,
  }),
}

function decodeNewCredential(body: unknown): NewCredentialRequest {
  const sent = check(newCredential, body)
  return {
    credential: {
      id: sent.id ?? undefined,
      name: sent.name ?? undefined,
      allowedHosts: sent.allowedHosts ?? undefined,
      secret: toStoredSecret(sent.type, sent),
    },
    warnings: unknownFields(newCredential, body, READ_ONLY),
  }
}

function decodeCredentialPatch(body: unknown): CredentialPatchRequest {
  const sent = check(credentialPatch, body)
  return {
    change({ credential: now, secret }) {
      return {
        name: sent.name === undefined ? now.name : (sent.name ?? undefined),
        allowedHosts: sent.allowedHosts === undefined ? now.allowedHosts : (sent.allowedHosts ?? undefined),
        secret: toStoredSecret(sent.type ?? secret.type, sent, secret),
      }
    },
    warnings: unknownFields(credentialPatch, body, new Set([...READ_ONLY, 'id'])),
  }
}

function encodeCredential(credential: Credential, warnings: readonly Warning[] = []): Body {
  const { id, name, type, allowedHosts, createdAt, updatedAt, lastUsedAt } = credential
  return {
    id,
    name,
    type,
    allowedHosts,
    createTime: rfc3339(createdAt),
    updateTime: rfc3339(updatedAt),
    lastUsedTime: lastUsedAt === undefined ? undefined : rfc3339(lastUsedAt),
    ...(warnings.length > 0 ? { warnings } : {}),
  }
}
