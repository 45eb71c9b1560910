/** Signs URLs for S3 and Google Cloud Storage with the operator's credentials. Signing needs no request to either. */
import { readFileSync } from 'node:fs'
import type { S3ClientConfig } from '@aws-sdk/client-s3'
import { isAllowed, type ObjectAddress, parseObjectAddress } from './address.ts'
import { parseServiceAccount, type ServiceAccount, signForGoogle } from './google.ts'
import type { BucketSettings, Buckets } from './port.ts'

/** Validity of a signed URL, seconds. */
const SECONDS = 300
const GOOGLE = 'https://storage.googleapis.com'

type Sign = (object: ObjectAddress) => Promise<string>

/** Reads keys from `env` and the service account's file. Throws an Error with a message for the operator if one is missing. */
export function createBuckets({ s3, gs }: BucketSettings, env: NodeJS.ProcessEnv): Buckets {
  const signers: Record<ObjectAddress['scheme'], Sign | undefined> = {
    s3: isEmpty(s3.allow) ? undefined : s3Signer(s3, keysOf('files.s3', s3, env)),
    gs: isEmpty(gs.allow) ? undefined : googleSigner(gs, env),
  }

  return {
    faultOf(address, projectId) {
      const object = parseObjectAddress(address)
      if (typeof object === 'string') return object
      const { scheme } = object
      if (!signers[scheme])
        return `is a ${scheme}:// address, and this server is not configured to read any such bucket`
      if (isAllowed((scheme === 's3' ? s3 : gs).allow, projectId, object)) return undefined
      return 'is not in a bucket that this server may read for this project'
    },
    async sign(address) {
      const object = parseObjectAddress(address)
      if (typeof object === 'string') throw new Error(`the address ${object}`)
      const signer = signers[object.scheme]
      if (!signer) throw new Error('no credentials for such an address are configured')
      const { endpoint } = object.scheme === 's3' ? s3 : gs
      return { url: await signer(object), trusted: endpoint !== undefined }
    },
  }
}

function isEmpty(allow: BucketSettings['s3']['allow']): boolean {
  return Object.values(allow).flat().length === 0
}

type Keys = S3ClientConfig['credentials']

/** The access key; undefined if the settings name none. */
function keysOf(setting: string, named: BucketSettings['s3' | 'gs'], env: NodeJS.ProcessEnv): Keys {
  const { accessKeyIdEnv, secretAccessKeyEnv } = named
  if (accessKeyIdEnv === undefined && secretAccessKeyEnv === undefined) return undefined
  const [accessKeyId, secretAccessKey] = (['accessKeyIdEnv', 'secretAccessKeyEnv'] as const).map((name) => {
    const variable = named[name]
    if (variable === undefined)
      throw new Error(`${setting}.${name} is missing. Set both accessKeyIdEnv and secretAccessKeyEnv, or neither.`)
    const value = env[variable]
    if (!value) throw new Error(`${setting}.${name} names the environment variable ${variable}, which is not set.`)
    return value
  })
  return { accessKeyId: accessKeyId!, secretAccessKey: secretAccessKey! }
}

/** Without keys the AWS SDK finds credentials: its environment variables and files, the machine's role. */
function s3Signer(settings: Omit<BucketSettings['s3'], 'allow'>, credentials: Keys): Sign {
  const { region, endpoint, pathStyle = endpoint !== undefined } = settings
  // Loaded lazily: it costs half a second and 20 MB of memory.
  const load = async () => {
    const { S3Client, GetObjectCommand } = await import('@aws-sdk/client-s3')
    const { getSignedUrl } = await import('@aws-sdk/s3-request-presigner')
    const client = new S3Client({
      region,
      endpoint,
      credentials,
      forcePathStyle: pathStyle,
      responseChecksumValidation: 'WHEN_REQUIRED',
    })
    return (object: ObjectAddress) => {
      const command = new GetObjectCommand({ Bucket: object.bucket, Key: object.key })
      return getSignedUrl(client, command, { expiresIn: SECONDS })
    }
  }
  let loaded: ReturnType<typeof load> | undefined
  return async (object) => {
    loaded ??= load()
    return (await loaded)(object)
  }
}

function googleSigner(gs: BucketSettings['gs'], env: NodeJS.ProcessEnv): Sign {
  const { credentialsFile, endpoint = GOOGLE } = gs
  const keys = keysOf('files.gs', gs, env)
  // Google's XML API accepts S3 signatures with an HMAC key.
  if (keys) return s3Signer({ region: 'auto', endpoint, pathStyle: true }, keys)
  if (credentialsFile === undefined) {
    throw new Error(
      'files.gs.allow needs files.gs.credentialsFile, or an HMAC key by accessKeyIdEnv and secretAccessKeyEnv.',
    )
  }
  const account = readServiceAccount(credentialsFile)
  return async (object) => signForGoogle(account, endpoint, object, { at: new Date(), seconds: SECONDS })
}

function readServiceAccount(path: string): ServiceAccount {
  try {
    return parseServiceAccount(readFileSync(path, 'utf8'))
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    // The parser's message may contain parts of the secret file.
    const why = error instanceof SyntaxError ? 'it is not JSON' : (code ?? message)
    throw new Error(`files.gs.credentialsFile, ${path}, can't be used: ${why}.`)
  }
}
