import { registerScenarios } from './support/register.ts';
import { LANE_SETTINGS } from './support/secondary-lane.ts';

await registerScenarios('exim', { programs: ['exim'], settings: LANE_SETTINGS, secondaryLane: true });
