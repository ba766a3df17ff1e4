// Unpacks the browser into the temporary folder, with the libraries that bare machines lack.
process.env.AWS_EXECUTION_ENV = "AWS_Lambda_nodejs22.x";
const { default: chromium } = await import(process.argv[2]);
await chromium.executablePath();
