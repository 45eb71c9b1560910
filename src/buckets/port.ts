/**
 * The port to buckets that callers name, read with the operator's credentials: `s3://bucket/key`, `gs://bucket/object`. A
 * bucket that the operator did not list is refused, whether it exists or not.
 */

export interface Buckets {
  /** The reason why this project may not use the address, as words that follow its name ("must …"); undefined if it may. */
  faultOf(address: string, projectId: string): string | undefined
  /** Signs the address. Throws an Error if the credentials are not available. */
  sign(address: string): Promise<SignedAddress>
}

export interface SignedAddress {
  /** A secret: anyone who has it can read the object for a few minutes. */
  readonly url: string
  /** True if the operator configured the endpoint, which may then be private. */
  readonly trusted: boolean
}

export function isBucketAddress(address: string): boolean {
  return /^(s3|gs):\/\//i.test(address)
}

/** Buckets or `bucket/prefix`, for all projects, or by project id, where `*` is all projects. */
export type Allowed = readonly string[] | Readonly<Record<string, readonly string[]>>

/** Names of the environment variables with the access key's id and secret. */
interface KeyNames {
  readonly accessKeyIdEnv?: string
  readonly secretAccessKeyEnv?: string
}

export interface BucketSettings {
  readonly s3: KeyNames & {
    readonly allow: Allowed
    readonly region: string
    readonly endpoint?: string
    readonly pathStyle?: boolean
  }
  readonly gs: KeyNames & {
    readonly allow: Allowed
    /** Path of a service account's JSON key file. */
    readonly credentialsFile?: string
    readonly endpoint?: string
  }
}
