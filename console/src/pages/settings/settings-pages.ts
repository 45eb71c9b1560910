/** The pages of the settings, in the order of the navigation. */
export const SETTINGS_PAGES = [
  { to: '/settings', name: 'Server' },
  { to: '/settings/models', name: 'Models' },
  { to: '/settings/skills', name: 'Skills' },
  { to: '/settings/mcp', name: 'MCP servers' },
  { to: '/settings/credentials', name: 'Credentials' },
  { to: '/settings/webhooks', name: 'Webhooks' },
  { to: '/settings/members', name: 'Members' },
  { to: '/settings/account', name: 'Account' },
  { to: '/settings/audit', name: 'Audit log' },
  { to: '/settings/you', name: 'Profile' },
] as const
