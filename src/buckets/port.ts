/**
 * The port to buckets that callers name and the operator's credentials read: `s3://bucket/key`, `gs://bucket/object`. What
 * the operator did not list is refused, whether it exists or not.
 */

export interface Buckets {
  /** What the address itself shows to be refused for this project, in words that follow its name ("must …"); undefined where nothing does. */
  faultOf(address: string, projectId: string): string | undefined
  /** Throws an Error where the credentials can't be had. */
  sign(address: string): Promise<SignedAddress>
}

export interface SignedAddress {
  /** Valid for a few minutes, for whoever has it: a secret. */
  readonly url: string
  /** Whether it lies at an endpoint that the operator named, which may be private. */
  readonly trusted: boolean
}

export function isBucketAddress(address: string): boolean {
  return /^(s3|gs):\/\//i.test(address)
}

/** Buckets, or `bucket/prefix`: for everyone, or by project id, where `*` is everyone. */
export type Allowed = readonly string[] | Readonly<Record<string, readonly string[]>>

/** The names of the environment variables that hold the two halves of a key. */
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
    /** A service account's, as Google's console gives it. */
    readonly credentialsFile?: string
    readonly endpoint?: string
  }
}
