/** The web console: who may sign up, and single sign-on. */
import { address, type Setting, text, toggle } from '../setting.ts'

export const CONSOLE_SETTINGS: readonly Setting[] = [
  toggle('console.signUp', {
    fallback: false,
    doc: 'Whether anybody who can reach the console may make an account of their own. The service is off in it until its owner switches it on.',
  }),
  address('console.oidc.issuer', {
    must: 'an https address, or an http one on loopback',
    schemes: ['http', 'https'],
    doc: 'An OpenID Connect provider to sign in to the console with, beside passwords. It sends browsers back to `<publicUrl>/console/auth/callback/oidc`.',
  }),
  text('console.oidc.clientId', {
    must: 'a client’s id',
    pattern: /^\S+$/,
    doc: 'What the provider calls this server.',
  }),
  text('console.oidc.clientSecret', {
    must: 'a client’s secret',
    pattern: /^\S+$/,
    secret: true,
    doc: 'And its secret there.',
  }),
  text('console.oidc.name', {
    must: 'a name',
    pattern: /^\S.{0,63}$/,
    fallback: 'Single sign-on',
    doc: 'What the console’s button says.',
  }),
]
