import { registerScenarios } from './support/register.ts';

await registerScenarios('exim', { programs: ['exim'] });
