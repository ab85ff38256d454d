import { registerScenarios } from './support/register.ts';

// Public addresses behind NAT count as those of this server only with an MX listener.
await registerScenarios('routing', { settings: { 'mx.listen': '127.0.0.1:0' } });
