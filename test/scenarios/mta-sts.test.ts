import { registerScenarios } from './support/register.ts';

await registerScenarios('mta-sts', { programs: ['root'], policyHost: true });
