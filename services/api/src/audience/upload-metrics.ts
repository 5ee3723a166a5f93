import { counter, histogram } from '#runtime/metrics';

export const uploadMetrics = {
  rows: counter('punctual_api_audience_rows', 'Rows of uploaded audiences, by what became of them'),
  seconds: histogram('punctual_api_audience_upload_duration', 'From the first byte of an upload to its end, by outcome'),
};
