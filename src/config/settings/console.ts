/** The web console: who may sign up, and single sign-on. */
import { address, type Setting, text, toggle } from '../setting.ts'

export const CONSOLE_SETTINGS: readonly Setting[] = [
  toggle('console.signUp', {
    fallback: false,
    doc: 'Whether anyone who can reach the console may create an account. The service is off in a new account until its owner enables it.',
  }),
  address('console.oidc.issuer', {
    must: 'an https address, or an http one on loopback',
    schemes: ['http', 'https'],
    doc: 'OpenID Connect provider for sign-in to the console, in addition to passwords. Its redirect URI is `<publicUrl>/console/auth/callback/oidc`.',
  }),
  text('console.oidc.clientId', {
    must: 'a client’s id',
    pattern: /^\S+$/,
    doc: 'Client id of this server at the provider.',
  }),
  text('console.oidc.clientSecret', {
    must: 'a client’s secret',
    pattern: /^\S+$/,
    secret: true,
    doc: 'Client secret of this server at the provider.',
  }),
  text('console.oidc.name', {
    must: 'a name',
    pattern: /^\S.{0,63}$/,
    fallback: 'Single sign-on',
    doc: 'Label of the sign-in button.',
  }),
]
