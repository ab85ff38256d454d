import { contentWithoutPerson } from './audience/erasure/erasers.ts';
import { personalDataPage } from './audience/personal-data.ts';
import { contactSearch } from './audience/search.ts';
import { copyChunk } from './audience/segments/columns.ts';
import { countPortion, countSelected, nextSelected, segmentContacts } from './audience/segments/evaluate.ts';
import { archivedMail, archivedPage, archivedSubjects } from './campaigns/archive.ts';
import { campaignAnalytics } from './campaigns/campaigns.ts';
import { customFieldsPortion } from './campaigns/fields.ts';
import { campaignFigures, groupAudience, selectedAudience } from './campaigns/figures.ts';
import { LOW_PRIORITY, lowerPriority } from './core/thread-priority.ts';
import { readDestination } from './delivery/explain.ts';
import { accountAttention } from './doctor/attention.ts';
import { doctorState } from './doctor/state.ts';
import { dmarcHistory, domainReports } from './domains/reports.ts';
import { messageSeries } from './events/message-stats.ts';
import { messageHistory, messagePage } from './events/message-view.ts';
import { inboxMail, inboxPage, inboxSource } from './inbox/inbox.ts';
import { failingCauses } from './notices/failure-notices.ts';
import { streamCounts } from './reputation/monitor.ts';
import { reputationReport } from './reputation/report.ts';
import { sentContent } from './sending/sent-content.ts';
import { serveReads } from './store/readers/thread.ts';
import { partialUses } from './templates/partials.ts';
import { webhookHealth } from './webhooks/health.ts';

lowerPriority(LOW_PRIORITY);

/** The program of the threads that read the database, with every query that they run. */
serveReads([
  accountAttention,
  archivedMail,
  archivedPage,
  archivedSubjects,
  campaignAnalytics,
  campaignFigures,
  contactSearch,
  contentWithoutPerson,
  copyChunk,
  countPortion,
  countSelected,
  customFieldsPortion,
  doctorState,
  dmarcHistory,
  domainReports,
  failingCauses,
  groupAudience,
  inboxMail,
  inboxPage,
  inboxSource,
  messageHistory,
  messagePage,
  messageSeries,
  nextSelected,
  partialUses,
  personalDataPage,
  readDestination,
  reputationReport,
  segmentContacts,
  selectedAudience,
  sentContent,
  streamCounts,
  webhookHealth,
]);
