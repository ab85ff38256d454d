import { registerScenarios } from './support/register.ts';

// Without an MX listener, an address behind NAT is none of this server.
await registerScenarios('routing', { settings: { 'mx.listen': '127.0.0.1:0' } });
